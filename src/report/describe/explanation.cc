#include "report/describe/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/categories/category_sums.h"
#include "analysis/categories/mapped_files.h"
#include "analysis/leaks/leaks.h"
#include "analysis/pass/op_names.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostNamed = 3;  // categories
constexpr uint64_t kLeastRowShare = 20;  // a twentieth is worth a word beside others

/// In the order of WorkPhase.
constexpr const char* kPhaseWords[] = {"",
                                       "in the forward pass",
                                       "in the backward pass",
                                       "in the optimizer's step",
                                       "while data was loaded",
                                       "in a forward pass without gradients"};

/// "activations", as a sentence has it.
std::string plural_of(const std::string& name) {
  const bool has_plural = name == "parameter" || name == "buffer" || name == "gradient" ||
                          name == "activation" || name == "input" || name == "workspace";
  if (has_plural) return name + "s";
  if (name == "temporary") return "temporaries";
  if (name == "weight copy") return "copies of weights";
  if (name == "framework other") return "kept by modules for an unknown reason";
  return name == "unknown" ? "of unknown type" : name;
}

bool is_unknown_work(const WorkRow& row) {
  return row.where.empty() && row.part == phase_name(Phase::kUnknown);
}

/// "optimizer sequential/dense", "gradient", "of unknown type".
std::string words_of_work(const WorkRow& row) {
  if (is_unknown_work(row)) return "of unknown type";
  if (row.where.empty()) return row.part == "framework's own" ? "the framework's own" : row.part;
  return row.part == phase_name(Phase::kUnknown)
             ? printable(row.where)
             : fmt::format("{} {}", row.part, printable(row.where));
}

class Paragraph {
 public:
  Paragraph(const Analysis& analysis, const Tables& tables, const DeviceAnalysis& device,
            std::string_view folder, const AdviceReport* advice)
      : analysis_(analysis),
        tables_(tables),
        device_(device),
        folder_(folder),
        advice_(advice),
        peak_(device.figures.peak_bytes) {}

  /// Three sentences: what it was, where it was allocated, what to do next.
  PeakExplanation write() {
    write_what();
    write_where();
    write_mapped();
    NextStep next = next_step(analysis_, tables_, device_, folder_, advice_, makeup_);
    for (const std::string& sentence : {next.text, next.then})
      if (!sentence.empty()) say(sentence);
    out_.next = std::move(next.text), out_.then = std::move(next.then);
    out_.asks_for_advice = next.asks_for_advice;
    std::ranges::move(next.figures, std::back_inserter(out_.figures));
    return std::move(out_);
  }

 private:
  void say(std::string sentence) {
    if (!out_.text.empty()) out_.text += ' ';
    out_.text += sentence;
  }
  uint64_t figure(std::string name, uint64_t value) {
    out_.figures.emplace_back(std::move(name), value);
    return value;
  }
  std::string share(uint64_t bytes) const {
    return fmt::format("{} ({})", format_bytes(bytes), format_percent(bytes, peak_));
  }
  bool is_before_events() const {
    return device_.snapshot ? !device_.snapshot->peak_event
                            : is_peak_before_events(analysis_, device_);
  }

  /// "4.00 KiB were live on cpu at the peak, in step 1: 75.0 % parameters and 25.0 % activations."
  void write_what() {
    figure("peak_bytes", peak_);
    const uint64_t blocks = figure("peak_blocks", device_.figures.peak_count);
    note_level();
    std::string text =
        fmt::format("{} in {} were live on {}", format_bytes(peak_), format_plural(blocks, "block"),
                    memory_name(device_, tables_));
    if (is_moment(device_)) {
      text += " at the one moment that the file covers";
    } else if (is_before_events()) {
      text += " at the peak, before the first event that was recorded";
    } else {
      text += fmt::format(" at the peak, {}{}", when_words(), work_words());
    }
    say(text + category_words() + '.');
  }

  std::string when_words() const {
    const bool has_times =
        device_.snapshot ? device_.snapshot->has_times : analysis_.source.can.times;
    if (has_times) return moment_text(analysis_, device_.figures.peak_time_ns);
    const uint64_t event =
        device_.snapshot ? *device_.snapshot->peak_event : device_.figures.peak_event;
    return "event " + format_count(event + 1);
  }

  /// ", in step 4, in the backward pass"; empty where it is not known.
  std::string work_words() {
    const PeakWork& work = device_.categories.peak;
    std::string text;
    if (!work.is_known) return text;
    if (work.steps != 0) {
      if (work.step_ended) {
        text += fmt::format(", in step {}", figure("step", work.step));
      } else {
        text += fmt::format(", after step {}, the last {}one", figure("last_step", work.step - 1),
                            is_exact(analysis_, device_) ? "" : "recorded ");
      }
    }
    const Attribution made_in = attribution_of(tables_, work.stack);
    if (made_in.phase != WorkPhase::kNone)
      text += fmt::format(", {}", kPhaseWords[static_cast<size_t>(made_in.phase)]);
    if (!made_in.user_phase.empty()) {
      text += fmt::format(", in phase “{}”", printable(made_in.user_phase));
    }
    return text;
  }

  void sum_up_batch(const std::vector<CategoryHolder>& holders) {
    for (const CategoryHolder& holder : holders) {
      if (!is_of_batch(holder, tables_)) continue;
      (holder.category == Category::kActivation ? makeup_.activations_bytes
                                                : makeup_.others_of_batch_bytes) += holder.bytes;
      makeup_.cannot_checkpoint |= attribution_of(tables_, holder.stack).is_recomputed;
    }
  }

  /// The end of a sentence: the largest categories, or why they are not known.
  std::string category_words() {
    const DeviceCategories& known = device_.categories;
    std::string why = printable(known.why_not);
    if (known.is_known && !known.at_peak.empty()) {
      const CategorySums sums = category_sums(known.at_peak, tables_);
      if (sums.categories.size() > 1 || sums.categories[0].name != "unknown") {
        makeup_.has_categories = true;
        sum_up_batch(known.at_peak);
        makeup_.cannot_checkpoint |= are_activations_of_backward(known.at_peak, tables_);
        find_module(sums.modules);
        return ": " + largest_categories(sums.categories) +
               (known.is_by_rules ? ", inferred from stacks and lifetimes" : "");
      }
      why = known.is_by_rules       ? "stacks and lifetimes match no rule"
            : has_types_elsewhere() ? "no module made them and they have no tensor role"
                                    : "the recording has no modules and no tensor roles";
    }
    if (const std::string layers = largest_layers(); !layers.empty()) return ": " + layers;
    return why.empty() ? "" : "; their types are unknown, because " + why;
  }

  bool has_types_elsewhere() const {
    return std::ranges::any_of(analysis_.devices, [](const DeviceAnalysis& one) {
      return std::ranges::any_of(one.categories.at_peak, [](const CategoryHolder& holder) {
        return holder.category != Category::kUnknown;
      });
    });
  }

  /// Of TensorFlow: "33.0 % optimizer sequential/dense, 20.1 % gradient and 9.3 % of unknown type";
  /// empty where no type is known.
  std::string largest_layers() {
    if (!is_tensorflow(device_at(tables_, device_.device))) return {};
    std::vector<WorkRow> rows = work_rows(device_.holders_at_peak, tables_, WorkRows::kByPart);
    if (std::ranges::all_of(rows, is_unknown_work)) return {};
    const auto is_small = [&](const WorkRow& row) { return row.bytes < peak_ / kLeastRowShare; };
    size_t named = 0;
    while (named < std::min(kMostNamed, rows.size()) && (named == 0 || !is_small(rows[named])))
      ++named;
    rows.resize(named);
    std::string text;
    for (size_t i = 0; i < named; ++i) {
      const char* before = i == 0 ? "" : i + 1 == named ? " and " : ", ";
      const uint64_t bytes = figure(fmt::format("layer_{}_bytes", i + 1), rows[i].bytes);
      text += fmt::format("{}{} {}", before, format_percent(bytes, peak_), words_of_work(rows[i]));
    }
    return text;
  }

  std::string largest_categories(const std::vector<CategoryGroup>& groups) {
    std::string text;
    uint64_t rest = peak_;
    const size_t named = std::min(kMostNamed, groups.size());
    for (size_t i = 0; i < named; ++i) {
      const char* before = i == 0 ? "" : i + 1 == named ? " and " : ", ";
      const uint64_t bytes = figure(fmt::format("category_{}_bytes", i + 1), groups[i].bytes);
      const bool is_buckets =
          groups[i].name == category_name(Category::kFrameworkOther) &&
          2 * bucket_bytes(device_.categories.at_peak, tables_) > groups[i].bytes;
      text += fmt::format("{}{} {}", before, format_percent(bytes, peak_),
                          is_buckets ? kBuckets : plural_of(groups[i].name));
      rest -= bytes;
    }
    if (groups.size() > named) figure("other_categories_bytes", rest);
    return text;
  }

  void find_module(const std::vector<CategoryGroup>& groups) {
    for (const CategoryGroup& group : groups) {
      if (group.name.empty()) continue;
      const std::string words = module_words(group.name);
      module_ = fmt::format("; the largest {}{}: {}", words == group.name ? "module is " : "is ",
                            printable(words), share(figure("module_1_bytes", group.bytes)));
      return;
    }
  }

  void write_where() {
    const std::vector<HolderLine> lines = group_by_line(device_.holders_at_peak, tables_);
    if (lines.empty()) return say("No line is known.");
    if (lines.size() == 1 && lines[0].node == 0)
      return say("Which line allocated them is unknown: no stack was recorded.");
    const bool lacks_most = lines[0].node == 0;
    if (lacks_most) {
      say(fmt::format("{} {}.", share(figure("no_stack_bytes", lines[0].bytes)),
                      is_no_stack_from_before(device_)
                          ? "were live before the recording began and have no stack"
                          : "have no stack"));
    }
    const HolderLine& line = lines[lacks_most ? 1 : 0];
    say(fmt::format("{}{} allocated most: {}{}.", lacks_most ? "Of the rest, " : "",
                    headline_text(tables_, line.node, folder_),
                    share(figure("line_1_bytes", line.bytes)), module_));
  }

  /// A file that a tensor maps is no part of the peak, and may be much larger.
  void write_mapped() {
    for (const DeviceAnalysis& other : analysis_.devices) {
      const auto& holders = other.holders_at_peak;
      const uint64_t bytes = mapped_file_bytes(tables_, other.device, holders);
      if (bytes == 0 || bytes < peak_ / kSentenceShare) continue;
      const auto mapped = std::ranges::find_if(
          holders, [&](const Holder& holder) { return maps_file(tables_, holder.stack); });
      say(fmt::format("{}{} are files that {} maps; only the pages that are touched take memory.",
                      format_bytes(figure("mapped_file_bytes", bytes)),
                      &other == &device_ ? "" : " more",
                      headline_text(tables_, leak_line(tables_, mapped->stack), folder_)));
      return;
    }
  }

  /// The level between steps, or at the end.
  void note_level() {
    const std::vector<StepLevel>& levels = device_.step_levels.levels();
    if (levels.size() < 2) {
      figure("end_bytes", device_.figures.live_bytes);
      return;
    }
    std::vector<uint64_t> ends;
    for (size_t i = levels.size() / 4; i < levels.size(); ++i) ends.push_back(levels[i].end_bytes);
    std::ranges::sort(ends);
    const uint64_t steady = figure("steady_bytes", ends[(ends.size() - 1) / 2]);
    makeup_.level = fmt::format(". At the ends of steps {} to {}, {} were live (the median)",
                                levels[levels.size() / 4].step, levels.back().step,
                                format_bytes(steady));
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const DeviceAnalysis& device_;
  const std::string_view folder_;
  const AdviceReport* const advice_;
  const uint64_t peak_;
  PeakMakeup makeup_;
  std::string module_;  ///< the one that held most: the end of a sentence
  PeakExplanation out_;
};

}  // namespace

PeakExplanation explain_peak(const Analysis& analysis, const Tables& tables,
                             const DeviceAnalysis& device, std::string_view folder,
                             const AdviceReport* advice) {
  return Paragraph(analysis, tables, device, folder, advice).write();
}

std::string next_beside_advice(const Analysis& analysis, const Tables& tables,
                               std::string_view folder) {
  const DeviceAnalysis* device = main_device(analysis, tables);
  return device ? next_beside_advice(analysis, tables, *device, folder) : std::string();
}

std::string next_beside_advice(const Analysis& analysis, const Tables& tables,
                               const DeviceAnalysis& device, std::string_view folder) {
  PeakExplanation told = explain_peak(analysis, tables, device, folder);
  const std::string next =
      told.next == kNextIsAdvice ? next_without_advice(tables, device, folder) : told.next;
  return next + (next.empty() || told.then.empty() ? "" : " ") + told.then;
}

}  // namespace gpumemprof
