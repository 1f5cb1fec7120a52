#include "report/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/category_sums.h"
#include "analysis/snapshot_device.h"
#include "base/size.h"
#include "report/facts.h"
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
  if (name == "framework other") return "kept from modules' calls for an unknown reason";
  return name == "unknown" ? "of no known category" : name;
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

  PeakExplanation write() {
    write_peak();
    const bool has_categories = write_categories();
    write_lines();
    write_come_and_gone(has_categories);
    write_level();
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
    const std::string held =
        fmt::format("{} in {}", format_bytes(peak_), format_plural(blocks, "block"));
    const std::string memory = memory_name(device_, tables_);
    if (is_moment(device_) || is_snapshot_without_history()) {
      return say(fmt::format("At the one moment that the file tells of, {} were live on {}.", held,
                             memory));
    }
    if (is_before_events()) {
      return say(fmt::format(
          "Memory on {} was highest before the first event that was recorded: {}.", memory, held));
    }
    const bool has_times =
        device_.snapshot ? device_.snapshot->has_times : analysis_.source.can.times;
    const uint64_t event =
        device_.snapshot ? *device_.snapshot->peak_event : device_.figures.peak_event;
    const std::string when = has_times ? moment_text(analysis_, device_.figures.peak_time_ns)
                                       : "at event " + format_count(event + 1);
    say(fmt::format("Memory on {} was highest {}{}: {} were live then.", memory, when, work_words(),
                    held));
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
      text += fmt::format(", in the phase “{}”", printable(made_in.user_phase));
    }
    return text;
  }

  /// False where they are not known.
  bool write_categories() {
    const DeviceCategories& known = device_.categories;
    if (!known.is_known || known.at_peak.empty()) {
      if (!known.why_not.empty()) {
        say(fmt::format("What it was is unknown: {}.", printable(known.why_not)));
      }
      return false;
    }
    const CategorySums sums = category_sums(known.at_peak, tables_);
    if (sums.categories.size() == 1 && sums.categories[0].name == "unknown") {
      say(known.is_by_rules
              ? "What it was is unknown: its stacks and lifetimes tell of none of it."
              : "What it was is unknown: the recording tells of no module and of no tensor's role.");
      return false;
    }
    write_largest_categories(sums.categories);
    write_modules(sums.modules);
    return true;
  }

  void write_largest_categories(const std::vector<CategoryGroup>& groups) {
    std::string text;
    uint64_t rest = peak_;
    const size_t named = std::min(kMostNamed, groups.size());
    for (size_t i = 0; i < named; ++i) {
      const char* before = i == 0 ? "" : i + 1 == named ? " and " : ", ";
      const uint64_t bytes = figure(fmt::format("category_{}_bytes", i + 1), groups[i].bytes);
      text += fmt::format("{}{} {} {}", before, share(bytes), i == 0 ? "of it were" : "were",
                          category_words(groups[i].name));
      rest -= bytes;
    }
    if (groups.size() > named) {
      text += fmt::format("; {} of {} were the rest",
                          format_bytes(figure("other_categories_bytes", rest)),
                          format_plural(groups.size() - named, "other kind"));
    }
    say(text + ".");
  }

  void write_modules(const std::vector<CategoryGroup>& groups) {
    std::vector<const CategoryGroup*> modules;
    uint64_t outside = 0;
    for (const CategoryGroup& group : groups) {
      if (group.name.empty()) {
        outside += group.bytes;
      } else {
        modules.push_back(&group);
      }
    }
    if (modules.empty()) return;
    std::string text =
        fmt::format("The module that held most was {} with {}", printable(modules[0]->name),
                    share(figure("module_1_bytes", modules[0]->bytes)));
    uint64_t rest = peak_ - outside - modules[0]->bytes;
    if (modules.size() > 1) {
      rest -= modules[1]->bytes;
      text += fmt::format(", the next {} with {}", printable(modules[1]->name),
                          share(figure("module_2_bytes", modules[1]->bytes)));
    }
    if (modules.size() > 2) {
      text += fmt::format("; {} had {}", format_plural(modules.size() - 2, "more module"),
                          format_bytes(figure("other_modules_bytes", rest)));
    }
    if (outside != 0) {
      text += fmt::format("; {} belonged to no module",
                          format_bytes(figure("no_module_bytes", outside)));
    }
    say(text + ".");
  }

  void write_lines() {
    const std::vector<HolderLine> lines = group_by_line(device_.holders_at_peak, tables_);
    if (lines.empty()) return;
    if (lines.size() == 1 && lines[0].node == 0) {
      return say("Which line allocated it is unknown: no stack was recorded.");
    }
    std::string text;
    uint64_t rest = peak_;
    const size_t named = std::min(kMostNamed - 1, lines.size());
    for (size_t i = 0; i < named; ++i) {
      const uint64_t bytes = figure(fmt::format("line_{}_bytes", i + 1), lines[i].bytes);
      const std::string name = lines[i].node == 0 ? std::string("what has no stack")
                                                  : headline_text(tables_, lines[i].node, folder_);
      text += i == 0 ? fmt::format("The line that held most was {}: {}", name, share(bytes))
                     : fmt::format("; the next, {}, held {}", name, share(bytes));
      rest -= bytes;
    }
    if (lines.size() > named) {
      text +=
          fmt::format("; {} held the other {}", format_plural(lines.size() - named, "more line"),
                      format_bytes(figure("other_lines_bytes", rest)));
    }
    say(text + ".");
  }

  void write_come_and_gone(bool has_categories) {
    const PeakWork& work = device_.categories.peak;
    if (!has_categories || !work.is_known) return;
    uint64_t temporary = 0;
    for (const CategoryHolder& holder : device_.categories.at_peak) {
      if (holder.category == Category::kTemporary) temporary += holder.bytes;
    }
    figure("temporary_bytes", temporary);
    const uint64_t freed = figure("freed_in_step_bytes", work.freed_in_step_bytes);
    const std::string until = work.step_ended ? fmt::format("step {}", work.step) : "the recording";
    const std::string gone =
        freed == 0 ? "None of it was" : fmt::format("{} of it were", share(freed));
    say(fmt::format("{} freed again before {} ended, and {} of it were temporary.", gone, until,
                    temporary == 0 ? "none" : format_bytes(temporary)));
  }

  void write_level() {
    const std::vector<StepLevel>& levels = device_.step_levels.levels();
    if (is_moment(device_) || is_snapshot_without_history()) return;
    if (levels.size() < 2) {
      const uint64_t live = figure("end_bytes", device_.figures.live_bytes);
      return say(fmt::format(
          "At the end {} were still live, {} less than at the peak.", format_bytes(live),
          format_bytes(figure("above_end_bytes", peak_ - std::min(peak_, live)))));
    }
    const size_t first = levels.size() / 4;
    std::vector<uint64_t> ends;
    for (size_t i = first; i < levels.size(); ++i) ends.push_back(levels[i].end_bytes);
    std::ranges::sort(ends);
    const uint64_t steady = figure("steady_bytes", ends[(ends.size() - 1) / 2]);
    const uint64_t above = figure("above_steady_bytes", peak_ - std::min(peak_, steady));
    say(fmt::format(
        "Between steps {} stayed live (the median at the ends of steps {} to {}), so "
        "the peak was {} above that.",
        format_bytes(steady), levels[first].step, levels.back().step, format_bytes(above)));
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const DeviceAnalysis& device_;
  const std::string_view folder_;
  const uint64_t peak_;
  PeakExplanation out_;
};

}  // namespace

PeakExplanation explain_peak(const Analysis& analysis, const Tables& tables,
                             const DeviceAnalysis& device, std::string_view folder) {
  return Paragraph(analysis, tables, device, folder).write();
}

}  // namespace gpumemprof
