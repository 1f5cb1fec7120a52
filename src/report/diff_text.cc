#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/size.h"
#include "report/diff_report.h"
#include "report/facts.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kHeadlineRows = 3;
constexpr size_t kFramesOfStack = 6;
constexpr size_t kCallers = 3;

/// The same line of code in both runs, wherever it lies.
std::string line_key(const Tables& tables, uint32_t node) {
  const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
  return fmt::format("{}:{} {}", aligned_file(tables.strings.get(frame.file)), frame.line,
                     tables.strings.get(frame.function));
}

/// The next frame outwards that is the user's own; 0 where there is none.
uint32_t user_caller(const Tables& tables, uint32_t node) {
  for (node = tables.stacks.node(node).parent; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
    if (frame.line != 0 && is_user_file(tables.strings.get(frame.file))) return node;
  }
  return 0;
}

class DiffText {
 public:
  DiffText(const Diff& diff, const DiffOptions& options) : diff_(diff), options_(options) {
    find_callers();
  }

  std::string write() {
    line(paint("1", diff_sentence(diff_)));
    for (size_t i = 0; i < std::min(kHeadlineRows, diff_.by_line.size()); ++i) {
      if (diff_.by_line[i].peak_delta() != 0) write_row(diff_.by_line[i]);
    }
    line(diff_end_sentence(diff_));
    write_sides();
    for (const std::string& text : diff_caveats(diff_)) line(paint("33", "Note: ") + text);
    write_table(fmt::format("By line of your code{}", when_text(diff_)), diff_.by_line);
    write_groups("By category", "category", diff_.by_category);
    write_groups("By module", "module", diff_.by_module);
    if (!is_of_steps()) {
      write_layers();
      write_ended();
    }
    write_stacks();
    return std::move(out_);
  }

 private:
  void line(std::string_view text = {}) { (out_ += text) += '\n'; }
  std::string paint(std::string_view code, std::string_view text) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  void title(std::string_view text) {
    line();
    line(paint("1", text));
  }
  void more(size_t total, size_t shown, std::string_view noun) {
    if (total > shown) {
      line(paint("2", fmt::format("  and {} more", format_plural(total - shown, noun))));
    }
  }

  bool is_of_steps() const { return diff_.a.moment && diff_.b.moment; }

  /// Categories always; modules only where the layers below do not say them.
  void write_groups(std::string_view name, std::string_view noun,
                    const DiffRows& rows) {
    if (rows.empty() || (noun == "module" && !is_of_steps())) return;
    title(fmt::format("{}{}", name, when_text(diff_)));
    line(paint("2", fmt::format("  {:>9}  {:>9}    {:>9}", "change", "A", "B")));
    size_t there = 0;
    for (const DiffRow& row : rows) {
      if (row.a.peak_bytes == 0 && row.b.peak_bytes == 0) continue;
      if (++there > options_.rows) continue;
      line(fmt::format(
          "  {:>9}  {:>9} -> {:>9}  {}", change_text(row.a.peak_bytes, row.b.peak_bytes),
          format_bytes(row.a.peak_bytes), format_bytes(row.b.peak_bytes), group_text(diff_, row)));
    }
    more(there, std::min(there, options_.rows), noun);
  }

  void write_row(const DiffRow& row) {
    const Change change = row.change();
    const bool is_news = change == Change::kAppeared || change == Change::kVanished;
    line(fmt::format("  {:>9}  {:>9} -> {:>9}  {}{}",
                     change_text(row.a.peak_bytes, row.b.peak_bytes),
                     format_bytes(row.a.peak_bytes), format_bytes(row.b.peak_bytes),
                     row_text(diff_, row, options_.working_folder),
                     is_news ? fmt::format("  ({})", change_name(change)) : ""));
  }

  void write_sides() {
    for (const DiffSide* side : {&diff_.a, &diff_.b}) {
      std::string text = fmt::format("  {}: {}", side == &diff_.a ? "A" : "B",
                                     printable(side->analysis->source.path));
      if (side->device != nullptr) {
        const Device& memory = device_at(*side->tables, side->device->device);
        text += ", " + memory_name(*side->device, *side->tables);
        if (memory.process < side->tables->processes.size()) {
          text += ", " + process_label(side->tables->processes[memory.process]);
        }
      }
      if (side->moment) {
        text += fmt::format(", the end of step {}, {}", side->moment->step,
                            moment_text(*side->analysis, side->moment->time_ns));
      }
      line(paint("2", text + fmt::format(", {}", format_plural(side->analysis->events, "event"))));
    }
  }

  void write_table(std::string_view name, const DiffRows& rows) {
    title(name);
    line(paint("2", fmt::format("  {:>9}  {:>9}    {:>9}", "change", "A", "B")));
    size_t shown = 0, changed = 0;
    for (const DiffRow& row : rows) {
      if (row.peak_delta() == 0) continue;
      if (++changed > options_.rows) continue;
      write_row(row);
      write_callers(row);
      ++shown;
    }
    if (changed == 0) line("  no difference");
    more(changed, shown, "line");
  }

  /// Rows that are the same too: that a layer needs what it needed is an answer.
  void write_layers() {
    if (diff_.by_layer.empty()) return;
    title("By layer, at the peak");
    line(paint("2", fmt::format("  {:>9}  {:>9}    {:>9}", "change", "A", "B")));
    size_t there = 0;
    for (const DiffRow& row : diff_.by_layer) {
      if (row.a.peak_bytes == 0 && row.b.peak_bytes == 0) continue;
      if (++there > options_.rows) continue;
      line(fmt::format(
          "  {:>9}  {:>9} -> {:>9}  {}", change_text(row.a.peak_bytes, row.b.peak_bytes),
          format_bytes(row.a.peak_bytes), format_bytes(row.b.peak_bytes), layer_text(diff_, row)));
    }
    more(there, options_.rows, "row");
  }

  /// What is not given back is a question of its own: the peaks may be equal.
  void write_ended() {
    std::vector<const DiffRow*> rows;
    for (const DiffRow& row : diff_.by_line) {
      if (row.end_delta() != 0) rows.push_back(&row);
    }
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(), [](const DiffRow* x, const DiffRow* y) {
      return magnitude(x->end_delta()) > magnitude(y->end_delta());
    });
    title("By line of your code, at the end");
    const size_t shown = std::min(options_.rows, rows.size());
    for (size_t i = 0; i < shown; ++i) {
      const DiffRow& row = *rows[i];
      line(fmt::format("  {:>9}  {:>9} -> {:>9}  {}", change_text(row.a.end_bytes, row.b.end_bytes),
                       format_bytes(row.a.end_bytes), format_bytes(row.b.end_bytes),
                       row_text(diff_, row, options_.working_folder)));
    }
    more(rows.size(), shown, "line");
  }

  void write_stacks() {
    title("The stacks that changed most");
    size_t shown = 0;
    for (const DiffRow& row : diff_.by_stack) {
      if (row.peak_delta() == 0 || shown == options_.rows / 2) break;
      write_stack(row);
      ++shown;
    }
    if (shown == 0) line("  no difference");
    line(paint("2", "  --format json has every stack."));
  }

  const Tables& tables_of(const DiffRow& row) const {
    return *(row.from_b ? diff_.b : diff_.a).tables;
  }
  void dim_line(std::string_view text) { line(paint("2", fmt::format("{:39}{}", "", text))); }

  /// A stack by its line of the user's code, what that led to, and who called it.
  void write_stack(const DiffRow& row) {
    const Tables& tables = tables_of(row);
    const uint32_t headline = headline_node(tables, row.node);
    DiffRow shown = row;
    shown.node = headline;
    write_row(shown);
    for (uint32_t node = row.node; node != headline; node = tables.stacks.node(node).parent) {
      if (tables.stacks.frame(tables.stacks.node(node).frame).line == 0) continue;
      dim_line("in " + headline_text(tables, node, options_.working_folder));
      break;  // the innermost frame of Python: what is within is machinery
    }
    uint32_t node = user_caller(tables, headline);
    for (size_t i = 0; i < kFramesOfStack && node != 0; ++i, node = user_caller(tables, node)) {
      dim_line(headline_text(tables, node, options_.working_folder));
    }
  }

  /// A line that everything goes through, such as a layer's, says little without who calls it.
  void find_callers() {
    for (const DiffRow& row : diff_.by_stack) {
      if (row.peak_delta() == 0 || row.node == 0) continue;
      const Tables& tables = tables_of(row);
      const uint32_t headline = headline_node(tables, row.node);
      const uint32_t caller = user_caller(tables, headline);
      if (caller == 0) continue;
      auto& callers = callers_[line_key(tables, headline)];
      auto [at, added] =
          callers.try_emplace(line_key(tables, caller),
                              Caller{headline_text(tables, caller, options_.working_folder), 0});
      at->second.delta_bytes += row.peak_delta();
    }
  }

  void write_callers(const DiffRow& row) {
    const auto found = callers_.find(line_key(tables_of(row), row.node));
    if (row.node == 0 || found == callers_.end()) return;
    std::vector<const Caller*> callers;
    for (const auto& [key, caller] : found->second) callers.push_back(&caller);
    std::stable_sort(callers.begin(), callers.end(), [](const Caller* x, const Caller* y) {
      return magnitude(x->delta_bytes) > magnitude(y->delta_bytes);
    });
    for (size_t i = 0; i < std::min(kCallers, callers.size()); ++i) {
      const uint64_t size = magnitude(callers[i]->delta_bytes);
      if (size == 0) continue;
      const bool shrank = callers[i]->delta_bytes < 0;
      dim_line(fmt::format("{} from {}", change_text(shrank ? size : 0, shrank ? 0 : size),
                           callers[i]->text));
    }
  }

  struct Caller {
    std::string text;
    int64_t delta_bytes = 0;
  };
  std::map<std::string, std::map<std::string, Caller>> callers_;  // by line_key() of both
  const Diff& diff_;
  const DiffOptions& options_;
  std::string out_;
};

}  // namespace

std::string diff_text(const Diff& diff, const DiffOptions& options) {
  return DiffText(diff, options).write();
}

}  // namespace gpumemprof
