#include "report/render/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kTextWidth = 98;  // of a paragraph, at most: longer lines are hard to read
constexpr size_t kGap = 2;  // between columns

std::string aligned(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, places_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

class TextRenderer {
 public:
  explicit TextRenderer(const TextStyle& style) : style_(style) {}

  /// A section of charts alone is left out.
  void write(const Section& section) {
    const bool is_answer = section.title.empty();
    const size_t before = lines_.size();
    for (const Part& part : section.parts) write(part, kGap, is_answer);
    if (is_answer || lines_.size() == before) return;
    const auto at = lines_.begin() + static_cast<std::ptrdiff_t>(before);
    lines_.insert(at, {"", paint(Tone::kStrong, printable(section.title))});
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void line(std::string text) { lines_.push_back(std::move(text)); }

  std::string paint(Tone tone, std::string text) const {
    static constexpr const char* kCodes[] = {"", "1", "1", "1;31", "33", "", "2"};
    const char* code = kCodes[static_cast<size_t>(tone)];
    if (!style_.color || *code == 0 || text.empty()) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

  /// An answer's sentences begin at the margin, each in one line: they are copied and searched for.
  void write(const Part& part, size_t indent, bool is_answer = false) {
    const auto* sentence = std::get_if<Sentence>(&part.is);
    if (sentence && is_answer) return line(shown(*sentence));
    std::visit([&](const auto& is) { write(is, indent); }, part.is);
  }

  std::string shown(const Sentence& sentence) const {
    const std::string text = printable(sentence.text);
    return sentence.label.empty() ? paint(sentence.tone, text)
                                  : paint(sentence.tone, printable(sentence.label) + ": ") + text;
  }
  void write(const Sentence& sentence, size_t indent) {
    const size_t room = style_.columns == 0 ? kTextWidth : std::min(kTextWidth, style_.columns);
    const size_t width = room - std::min(indent, room / 2);
    for (const std::string& row : wrapped(shown(sentence), width))
      line(std::string(indent, ' ') + row);
  }

  void write(const List& list, size_t indent) {
    size_t width = list.label_width;
    for (const Item& item : list.items) width = std::max(width, places_of(item.label));
    for (const Item& item : list.items) {
      const std::string margin(indent, ' ');
      const std::string label =
          width == 0 ? "" : aligned(printable(item.label), width, true) + std::string(kGap, ' ');
      line(margin + paint(item.tone, label) + printable(item.text));
      for (const Sentence& detail : item.details)
        line(std::string(indent + width + kGap, ' ') + shown(detail));
    }
  }

  std::string cell_text(const TableCell& cell) const {
    return std::string(kGap * cell.depth, ' ') + printable(cell.text);
  }

  void write(const Table& table, size_t indent) {
    std::vector<size_t> widths;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      size_t width = std::max(table.columns[c].width, places_of(table.columns[c].title));
      for (const Row& row : table.rows) {
        if (c < row.cells.size()) width = std::max(width, places_of(cell_text(row.cells[c])));
      }
      widths.push_back(width);
    }
    const bool has_titles = std::ranges::any_of(
        table.columns, [](const Column& column) { return !column.title.empty(); });
    if (has_titles && !table.rows.empty()) {
      std::string text(indent, ' ');
      for (size_t c = 0; c < table.columns.size(); ++c)
        text += (c == 0 ? "" : "  ") +
                aligned(table.columns[c].title, widths[c], table.columns[c].is_number);
      line(paint(Tone::kDim, text.substr(0, text.find_last_not_of(' ') + 1)));
    }
    // Below what follows the first column: stacks are wide.
    const size_t details_indent = indent + (widths.empty() ? 0 : widths[0]) + 2 * kGap;
    for (const Row& row : table.rows) {
      std::string text(indent, ' ');
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const TableCell& cell = row.cells[c];
        const bool is_last = c + 1 == row.cells.size();
        const bool is_number = table.columns[c].is_number;
        const std::string plain = is_last && !is_number
                                      ? cell_text(cell)
                                      : aligned(cell_text(cell), widths[c], is_number);
        if (c != 0) text += std::string(kGap, ' ');
        text += cell.is_strong ? paint(Tone::kStrong, plain) : plain;
        if (!cell.note.empty()) text += "  " + paint(Tone::kDim, printable(cell.note));
      }
      line(text.substr(0, text.find_last_not_of(' ') + 1));
      for (const Part& part : row.details) write(part, details_indent);
    }
    if (table.left_out != 0)
      line(std::string(indent, ' ') + paint(Tone::kDim, left_out_text(table)));
  }

  void write(const Stack& stack, size_t indent) {
    const std::string margin(indent, ' ');
    size_t hidden = 0;
    const auto flush_hidden = [&] {
      if (hidden != 0)
        line(margin +
             paint(Tone::kDim, fmt::format("… {} of libraries", format_plural(hidden, "frame"))));
      hidden = 0;
    };
    for (const StackFrame& frame : stack.frames) {
      if (!style_.full_stacks && !frame.is_kept) {
        ++hidden;
        continue;
      }
      flush_hidden();
      line(margin + printable(frame.text));
    }
    flush_hidden();
  }

  void write(const Chart&, size_t) {}

  const TextStyle& style_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> text_lines(const Section& section, const TextStyle& style) {
  TextRenderer renderer(style);
  renderer.write(section);
  return renderer.take();
}

std::string render_text(const Document& document, const TextStyle& style) {
  std::string out;
  for (const Section& section : document.sections) {
    if (section.title.empty() && !out.empty()) out += '\n';
    for (const std::string& line : text_lines(section, style)) (out += line) += '\n';
  }
  return out;
}

}  // namespace gpumemprof
