#include "report/describe/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/categories/category_sums.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostNamed = 3;  // categories; of modules and lines one less

const char* phase_words(WorkPhase phase) {
  switch (phase) {
    case WorkPhase::kForward:
      return "in the forward pass";
    case WorkPhase::kBackward:
      return "in the backward pass";
    case WorkPhase::kOptimizer:
      return "in the optimizer's step";
    case WorkPhase::kDataLoading:
      return "while data was loaded";
    case WorkPhase::kEvaluation:
      return "in a forward pass without gradients";
    default:
      return "";
  }
}

/// "activations", as a sentence has it.
std::string category_words(const std::string& name) {
  const bool has_plural = name == "parameter" || name == "buffer" || name == "gradient" ||
                          name == "activation" || name == "input" || name == "workspace";
  if (has_plural) return name + "s";
  if (name == "temporary") return "temporaries";
  if (name == "weight copy") return "copies of weights";
  if (name == "framework other") return "kept by modules, reason unknown";
  return name == "unknown" ? "without a known category" : name;
}

class Paragraph {
 public:
  Paragraph(const Analysis& analysis, const Tables& tables, const DeviceAnalysis& device,
            std::string_view folder)
      : analysis_(analysis),
        tables_(tables),
        device_(device),
        folder_(folder),
        peak_(device.figures.peak_bytes) {}

  /// Three sentences: how much and when, what and where, what can be lowered.
  PeakExplanation write() {
    write_peak();
    const bool has_categories = write_categories();
    write_lines();
    write_freed(has_categories);
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
  bool is_snapshot_without_history() const {
    return device_.snapshot && !device_.snapshot->has_history;
  }
  bool is_before_events() const {
    return device_.snapshot ? !device_.snapshot->peak_event
                            : is_peak_before_events(analysis_, device_);
  }

  void write_peak() {
    figure("peak_bytes", peak_);
    const uint64_t blocks = figure("peak_blocks", device_.figures.peak_count);
    const std::string live =
        fmt::format("{} in {} were live on {}", format_bytes(peak_), format_plural(blocks, "block"),
                    memory_name(device_, tables_));
    if (is_moment(device_) || is_snapshot_without_history())
      return say(live + " at the one moment that the file covers.");
    if (is_before_events())
      return say(live + " at the peak, before the first event that was recorded" + level_words());
    const bool has_times =
        device_.snapshot ? device_.snapshot->has_times : analysis_.source.can.times;
    const uint64_t event =
        device_.snapshot ? *device_.snapshot->peak_event : device_.figures.peak_event;
    const std::string when = has_times ? moment_text(analysis_, device_.figures.peak_time_ns)
                                       : "event " + format_count(event + 1);
    say(fmt::format("{} at the peak, {}{}{}", live, when, work_words(), level_words()));
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
        text += fmt::format(", after step {}, the last one", figure("last_step", work.step - 1));
      }
    }
    const Attribution made_in = attribution_of(tables_, work.stack);
    if (made_in.phase != WorkPhase::kNone) text += fmt::format(", {}", phase_words(made_in.phase));
    if (!made_in.user_phase.empty()) {
      text += fmt::format(", in phase “{}”", printable(made_in.user_phase));
    }
    return text;
  }

  /// False where they are not known.
  bool write_categories() {
    const DeviceCategories& known = device_.categories;
    std::string why;
    if (!known.is_known || known.at_peak.empty()) {
      why = printable(known.why_not);
    } else {
      const CategorySums sums = category_sums(known.at_peak, tables_);
      if (sums.categories.size() > 1 || sums.categories[0].name != "unknown") {
        write_largest_categories(sums.categories);
        find_module(sums.modules);
        return true;
      }
      why = known.is_by_rules ? "stacks and lifetimes match no rule"
                              : "the recording has no modules and no tensor roles";
    }
    out_.text += why.empty() ? " " : " What it was is unknown: " + why + "; ";
    return false;
  }

  void write_largest_categories(const std::vector<CategoryGroup>& groups) {
    std::string text;
    uint64_t rest = peak_;
    const size_t named = std::min(kMostNamed, groups.size());
    for (size_t i = 0; i < named; ++i) {
      const char* before = i == 0 ? "" : i + 1 == named ? " and " : ", ";
      const uint64_t bytes = figure(fmt::format("category_{}_bytes", i + 1), groups[i].bytes);
      text += fmt::format("{}{} {}{}", before, share(bytes), i == 0 ? "were " : "",
                          category_words(groups[i].name));
      rest -= bytes;
    }
    if (groups.size() > named) figure("other_categories_bytes", rest);
    out_.text += ' ' + text + "; ";
  }

  void find_module(const std::vector<CategoryGroup>& groups) {
    for (const CategoryGroup& group : groups) {
      if (group.name.empty()) continue;
      module_ = fmt::format(", and {} in module {}", share(figure("module_1_bytes", group.bytes)),
                            printable(group.name));
      return;
    }
  }

  /// The rest of the sentence that the categories began.
  void write_lines() {
    const std::vector<HolderLine> lines = group_by_line(device_.holders_at_peak, tables_);
    if (lines.empty()) {
      out_.text += "no line is known.";
    } else if (lines.size() == 1 && lines[0].node == 0) {
      out_.text += "which line allocated it is unknown: no stack was recorded.";
    } else {
      const uint64_t bytes = figure("line_1_bytes", lines[0].bytes);
      const std::string name = lines[0].node == 0 ? std::string("code without a stack")
                                                  : headline_text(tables_, lines[0].node, folder_);
      out_.text += fmt::format("{} allocated most: {}{}.", name, share(bytes), module_);
    }
  }

  /// What goes with a step is what the size of a batch decides.
  void write_freed(bool has_categories) {
    const PeakWork& work = device_.categories.peak;
    if (!has_categories || !work.is_known) return;
    const uint64_t freed = figure("freed_in_step_bytes", work.freed_in_step_bytes);
    if (!work.step_ended) return;
    say(freed == 0
            ? fmt::format("None of it was freed before step {} ended.", work.step)
            : fmt::format("{} were freed before step {} ended: that is what a smaller batch or "
                          "checkpointing can lower.",
                          share(freed), work.step));
  }

  /// The level between steps: the end of a sentence.
  std::string level_words() {
    const std::vector<StepLevel>& levels = device_.step_levels.levels();
    if (levels.size() < 2) {
      const uint64_t live = figure("end_bytes", device_.figures.live_bytes);
      return fmt::format("; {} were live at the end.", format_bytes(live));
    }
    const size_t first = levels.size() / 4;
    std::vector<uint64_t> ends;
    for (size_t i = first; i < levels.size(); ++i) ends.push_back(levels[i].end_bytes);
    std::ranges::sort(ends);
    const uint64_t steady = figure("steady_bytes", ends[(ends.size() - 1) / 2]);
    return fmt::format("; {} stayed between steps (the median at the ends of steps {} to {}).",
                       format_bytes(steady), levels[first].step, levels.back().step);
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const DeviceAnalysis& device_;
  const std::string_view folder_;
  const uint64_t peak_;
  std::string module_;  ///< the one that held most: the end of a sentence
  PeakExplanation out_;
};

}  // namespace

PeakExplanation explain_peak(const Analysis& analysis, const Tables& tables,
                             const DeviceAnalysis& device, std::string_view folder) {
  return Paragraph(analysis, tables, device, folder).write();
}

}  // namespace gpumemprof
