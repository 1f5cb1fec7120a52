// The report of a diff of two runs or two steps.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/size.h"
#include "report/describe/describe.h"
#include "report/describe/end_words.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kAnswerRows = 3;
constexpr size_t kCallers = 3;

/// The same line of code in both runs, wherever it lies.
std::string line_key(const Tables& tables, uint32_t node) {
  const Frame& frame = tables.stacks.frame_of(node);
  return fmt::format("{}:{} {}", aligned_file(tables.strings.get(frame.file)), frame.line,
                     tables.strings.get(frame.function));
}

bool differs_at_peak(const DiffRow& row) { return row.peak_delta() != 0; }
bool is_there(const DiffRow& row) { return row.a.peak_bytes != 0 || row.b.peak_bytes != 0; }

class DiffDescription {
 public:
  DiffDescription(const Diff& diff, const DiffOptions& options) : diff_(diff), options_(options) {
    find_callers();
  }

  Document write() {
    Document out{.title = diff_sentence(diff_)};
    out.add(answer());
    out.add(lines());
    out.add(groups("By category", "category", diff_.by_category, group_text));
    if (is_of_steps()) {
      out.add(modules());
    } else {
      // Both tell of modules; marks tell more of them than the names of operations.
      if (diff_.by_module.size() > 1 || diff_.by_layer.empty())
        out.add(modules());
      else
        out.add(groups("By layer", "layer", diff_.by_layer, layer_text));
      out.add(lines_at_end());
    }
    out.add(stacks());
    return out;
  }

 private:
  bool is_of_steps() const { return diff_.a.moment && diff_.b.moment; }

  const Tables& tables_of(const DiffRow& row) const {
    return *(row.from_b ? diff_.b : diff_.a).tables;
  }

  static Table changes(std::string noun) {
    return {.columns = {{"change", true, 9}, {"A", true, 9}, {"B", true, 9}, {noun}}, .noun = noun};
  }
  static Row change(const DiffFigures& a, const DiffFigures& b, uint64_t DiffFigures::* bytes,
                    TableCell cell) {
    return {{{change_text(a.*bytes, b.*bytes)},
             {format_bytes(a.*bytes)},
             {format_bytes(b.*bytes)},
             std::move(cell)}};
  }

  /// `node` of the row's tables is what it is called by.
  Row line_row(const DiffRow& row, uint32_t node) const {
    DiffRow shown = row;
    shown.node = node;
    const Change change_of = row.change();
    const bool is_news = change_of == Change::kAppeared || change_of == Change::kVanished;
    return change(row.a, row.b, &DiffFigures::peak_bytes,
                  {.text = row_text(diff_, shown, options_.working_folder),
                   .note = is_news ? fmt::format("({})", change_name(change_of)) : "",
                   .is_code = true});
  }

  static void add_table(Table table, Section* out) {
    if (table.rows.empty()) {
      out->add(Sentence{"No difference."});
    } else {
      out->add(std::move(table));
    }
  }

  Section answer() const {
    Section out;
    out.add(Sentence{diff_sentence(diff_), Tone::kHeadline});
    for (const DiffSide* side : {&diff_.a, &diff_.b}) add_ends(*side, &out);
    Table table = changes("line");
    for (size_t i = 0; i < std::min(kAnswerRows, diff_.by_line.size()); ++i) {
      const DiffRow& row = diff_.by_line[i];
      if (differs_at_peak(row)) table.rows.push_back(line_row(row, row.node));
    }
    if (!table.rows.empty()) out.add(std::move(table));
    out.add(Sentence{diff_end_sentence(diff_)});
    for (const DiffSide* side : {&diff_.a, &diff_.b})
      out.add(Sentence{side_text(*side), Tone::kDim, side == &diff_.a ? "A" : "B"});
    for (const std::string& text : diff_caveats(diff_))
      out.add(Sentence{text, Tone::kWarning, "Note"});
    return out;
  }

  /// Before all figures: those of a run that failed are of a part of it.
  void add_ends(const DiffSide& side, Section* out) const {
    if (side.analysis->ends.failure.empty() || side.moment) return;
    const char* name = &side == &diff_.a ? "A" : "B";
    for (Sentence& said : job_end_sentences(*side.analysis, options_.working_folder))
      out->add(Sentence{std::move(said.text), said.tone, name});
  }

  static std::string side_text(const DiffSide& side) {
    std::string text = side.analysis->source.path;
    if (side.device != nullptr) {
      const Device& memory = device_at(*side.tables, side.device->device);
      text += ", " + memory_name(*side.device, *side.tables);
      if (memory.process < side.tables->processes.size())
        text += ", " + process_label(side.tables->processes[memory.process]);
    }
    if (side.moment) {
      text += fmt::format(", the end of step {}, {}", side.moment->step,
                          moment_text(*side.analysis, side.moment->time_ns));
    }
    const bool is_of_device = side.device != nullptr && side.device->snapshot;
    return text + fmt::format(", {}", format_plural(is_of_device ? event_count(*side.device)
                                                                 : side.analysis->events,
                                                    "event"));
  }

  Section lines() const {
    Section out{fmt::format("By line of your code{}", when_text(diff_))};
    Table table = changes("line");
    std::vector<const DiffRow*> changed;
    for (const DiffRow& row : diff_.by_line) {
      if (differs_at_peak(row)) changed.push_back(&row);
    }
    add_rows(changed, options_.rows, &table, [&](const DiffRow* row) {
      Row out_row = line_row(*row, row->node);
      add_callers(*row, &out_row);
      return out_row;
    });
    add_table(std::move(table), &out);
    return out;
  }

  Section modules() const {
    Section out = groups("By module", "module", diff_.by_module, group_text);
    if (diff_.why_no_categories.empty() && !diff_.why_no_modules.empty())
      out.add(Sentence{fmt::format("Unknown: {}.", diff_.why_no_modules)});
    return out;
  }

  /// Those without a change are shown beside others.
  Section groups(const char* title, const char* noun, const DiffRows& rows,
                 std::string (*name)(const Diff&, const DiffRow&)) const {
    Section out{fmt::format("{}{}", title, when_text(diff_))};
    std::vector<const DiffRow*> there;
    uint64_t bytes = 0;
    for (const DiffRow& row : rows) {
      if (is_there(row)) there.push_back(&row);
      bytes += row.a.peak_bytes;
    }
    if (there.empty()) return out;
    if (std::ranges::none_of(rows, differs_at_peak)) {
      out.add(Sentence{fmt::format("No difference: {} in both.", format_bytes(bytes))});
      return out;
    }
    Table table = changes(noun);
    add_rows(there, options_.rows, &table, [&](const DiffRow* row) {
      return change(row->a, row->b, &DiffFigures::peak_bytes, {name(diff_, *row)});
    });
    out.add(std::move(table));
    return out;
  }

  /// What is not given back is a question of its own: the peaks may be equal.
  Section lines_at_end() const {
    Section out{"By line of your code, " + diff_end(diff_)};
    std::vector<const DiffRow*> rows;
    for (const DiffRow& row : diff_.by_line) {
      if (row.end_delta() != 0) rows.push_back(&row);
    }
    if (rows.empty()) return out;
    std::ranges::stable_sort(rows, std::ranges::greater(),
                             [](const DiffRow* row) { return magnitude(row->end_delta()); });
    Table table = changes("line");
    add_rows(rows, options_.rows, &table, [&](const DiffRow* row) {
      return change(row->a, row->b, &DiffFigures::end_bytes,
                    {.text = row_text(diff_, *row, options_.working_folder), .is_code = true});
    });
    out.add(std::move(table));
    return out;
  }

  Section stacks() const {
    Section out{"The stacks that changed most"};
    Table table = changes("stack");
    for (const DiffRow& row : diff_.by_stack) {
      if (!differs_at_peak(row) || table.rows.size() == (options_.rows + 1) / 2) break;
      const Tables& tables = tables_of(row);
      Row shown = line_row(row, headline_node(tables, row.node));
      if (row.node != 0)
        shown.details.emplace_back(stack_of(tables, row.node, options_.working_folder));
      table.rows.push_back(std::move(shown));
    }
    add_table(std::move(table), &out);
    out.add(Sentence{"--format json has every stack.", Tone::kDim});
    return out;
  }

  /// A line that everything goes through, such as a layer's, says little without who calls it.
  void find_callers() {
    for (const DiffRow& row : diff_.by_stack) {
      if (!differs_at_peak(row) || row.node == 0) continue;
      const Tables& tables = tables_of(row);
      const uint32_t headline = headline_node(tables, row.node);
      const uint32_t caller = own_node(tables, tables.stacks.node(headline).parent);
      if (caller == 0) continue;
      auto& callers = callers_[line_key(tables, headline)];
      auto [at, added] =
          callers.try_emplace(line_key(tables, caller),
                              Caller{headline_text(tables, caller, options_.working_folder), 0});
      at->second.delta_bytes += row.peak_delta();
    }
  }

  void add_callers(const DiffRow& row, Row* out) const {
    const auto found = callers_.find(line_key(tables_of(row), row.node));
    if (row.node == 0 || found == callers_.end()) return;
    std::vector<const Caller*> callers;
    for (const auto& [key, caller] : found->second) callers.push_back(&caller);
    std::ranges::stable_sort(callers, std::ranges::greater(),
                             [](const Caller* caller) { return magnitude(caller->delta_bytes); });
    for (size_t i = 0; i < std::min(kCallers, callers.size()); ++i) {
      const uint64_t size = magnitude(callers[i]->delta_bytes);
      if (size == 0) continue;
      const bool shrank = callers[i]->delta_bytes < 0;
      out->details.emplace_back(
          Sentence{fmt::format("{} from {}", change_text(shrank ? size : 0, shrank ? 0 : size),
                               callers[i]->text),
                   Tone::kDim});
    }
  }

  struct Caller {
    std::string text;
    int64_t delta_bytes = 0;
  };
  std::map<std::string, std::map<std::string, Caller>> callers_;  // by line_key() of both
  const Diff& diff_;
  const DiffOptions& options_;
};

}  // namespace

Document describe_diff(const Diff& diff, const DiffOptions& options) {
  return DiffDescription(diff, options).write();
}

}  // namespace gpumemprof
