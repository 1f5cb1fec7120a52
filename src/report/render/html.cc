#include "report/render/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/render/html_style.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// Every text goes through html_text() exactly where it enters the page.
class HtmlRenderer {
 public:
  std::string write(const Document& document) {
    for (const Section& section : document.sections)
      write(section, &section == &document.sections.front());
    return html_page(document.title, out_);
  }

 private:
  /// A section whose charts have nothing to show is left out.
  void write(const Section& section, bool is_answer) {
    const std::string before = std::exchange(out_, "");
    for (const Part& part : section.parts) write(part);
    const std::string body = std::exchange(out_, before);
    if (body.empty()) return;
    const std::string title = html_text(section.title);
    if (title.empty()) {
      const char* name = is_answer ? "header" : "section";
      out_ += fmt::format("<{0}>\n{1}</{0}>\n", name, body);
    } else if (section.is_folded) {
      out_ += fmt::format("<details><summary>{}</summary>\n{}</details>\n", title, body);
    } else {
      out_ += fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, body);
    }
  }

  void write(const Part& part) {
    std::visit([&](const auto& is) { write(is); }, part.is);
  }

  static const char* class_of(Tone tone) {
    static constexpr const char* kClasses[] = {"",         "",         "strong", "box lost",
                                               "box warn", "box note", "dim"};
    return kClasses[static_cast<size_t>(tone)];
  }
  static std::string tag(const char* name, Tone tone) {
    const char* as = class_of(tone);
    return *as == 0 ? fmt::format("<{}>", name) : fmt::format("<{} class=\"{}\">", name, as);
  }

  void write(const Sentence& sentence) {
    const char* name = sentence.tone == Tone::kHeadline ? "h1" : "p";
    const std::string label =
        sentence.label.empty() ? "" : fmt::format("<b>{}:</b> ", html_text(sentence.label));
    out_ += fmt::format("{}{}{}</{}>\n", tag(name, sentence.tone), label, html_text(sentence.text),
                        name);
  }

  void write(const List& list) {
    out_ += "<ul>\n";
    for (const Item& item : list.items) {
      out_ += tag("li", item.tone);
      if (!item.label.empty()) out_ += fmt::format("<b>{}</b> ", html_text(item.label));
      out_ += html_text(item.text);
      for (const Sentence& detail : item.details) write(detail);
      out_ += "</li>\n";
    }
    out_ += "</ul>\n";
  }

  static std::string cell_html(const TableCell& cell) {
    std::string text = html_text(cell.text);
    if (cell.is_code) text = fmt::format("<code>{}</code>", text);
    if (cell.is_strong) text = fmt::format("<b>{}</b>", text);
    if (cell.depth != 0)
      text = fmt::format("<span style=\"padding-left:{}em\">{}</span>", cell.depth, text);
    if (!cell.note.empty())
      text += fmt::format(" <{0} class=\"dim\">{1}</{0}>", cell.is_code ? "code" : "span",
                          html_text(cell.note));
    return text;
  }

  void write(const Row& row, const Table& table) {
    out_ += "<tr>";
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const bool is_last = c + 1 == row.cells.size();
      out_ += table.columns[c].is_number ? "<td class=\"n\">"
              : is_last                  ? "<td class=\"w\">"
                                         : "<td>";
      const std::string text = cell_html(row.cells[c]);
      if (is_last && !row.details.empty()) {
        out_ += fmt::format("<details><summary>{}</summary>\n", text);
        for (const Part& part : row.details) write(part);
        out_ += "</details>";
      } else {
        out_ += text;
      }
      if (is_last && row.share >= 0)
        out_ += fmt::format("<div class=\"bar\"><i style=\"width:{:.1f}%\"></i></div>",
                            100 * std::min(row.share, 1.0));
      out_ += "</td>";
    }
    out_ += "</tr>\n";
  }

  void write(const Table& table) {
    // On a phone the words of a row are below its numbers.
    const bool ends_in_words = table.columns.size() > 2 && !table.columns.back().is_number;
    out_ += ends_in_words ? "<div class=\"scroll\"><table class=\"rows\">"
                          : "<div class=\"scroll\"><table>";
    if (std::ranges::any_of(table.columns, [](const Column& one) { return !one.title.empty(); })) {
      out_ += "<thead><tr>";
      for (const Column& column : table.columns)
        out_ += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"n\"" : "",
                            html_text(column.title));
      out_ += "</tr></thead>";
    }
    out_ += "<tbody>\n";
    for (const Row& row : table.rows) write(row, table);
    out_ += "</tbody></table></div>\n";
    if (table.left_out != 0)
      out_ += fmt::format("<p class=\"dim\">{}</p>\n", html_text(left_out_text(table)));
  }

  /// Short paths to read, the whole ones as tooltips.
  void write(const Stack& stack) {
    const auto native = std::ranges::count_if(stack.frames, &StackFrame::is_native);
    write_frames(stack, native != 0);
    if (native == 0) return;
    out_ += fmt::format("<details class=\"stack\"><summary>with its {}</summary>",
                        format_plural(static_cast<uint64_t>(native), "C++ frame"));
    write_frames(stack, false);
    out_ += "</details>";
  }

  void write_frames(const Stack& stack, bool without_native) {
    out_ += "<div class=\"stack\">";
    for (const StackFrame& frame : stack.frames) {
      if (frame.is_native && without_native) continue;
      out_ += fmt::format("<p{} title=\"{}\">{}</p>\n", frame.is_user_code ? " class=\"u\"" : "",
                          html_text(frame.text), html_text(frame.short_text));
    }
    out_ += "</div>";
  }

  void write(const Chart& chart) { out_ += chart.draw(); }

  std::string out_;
};

}  // namespace

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>{}</title>\n<style>{}</style></head><body>\n{}</body></html>\n",
      html_text(title), kHtmlStyle, body);
}

std::string render_html(const Document& document) { return HtmlRenderer().write(document); }

}  // namespace gpumemprof
