#include "report/describe/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/categories/category_sums.h"
#include "analysis/categories/mapped_files.h"
#include "analysis/finding.h"
#include "analysis/leaks/leaks.h"
#include "analysis/oom_message/byte_range.h"
#include "analysis/pass/op_names.h"
#include "analysis/replay/settings_study.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/replay/told_refusals.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/snapshot_words.h"
#include "report/describe/work_rows.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr const char* kNextIsAdvice = "Next: gpumemprof advise looks for changes that lower it.";
constexpr size_t kMostNamed = 3;  // categories
constexpr uint64_t kLeastShare = 10;  // of the peak: a tenth is worth a sentence
constexpr uint64_t kLeastRowShare = 20;  // a twentieth is worth a word beside others

/// Absent without a replay, and beside a recording, in which advise finds more.
std::optional<ReplayLack> lack_of_snapshot(const DeviceAnalysis& device) {
  if (!device.snapshot || device.snapshot->is_recorded || !device.snapshot->is_replayed) return {};
  return lack_of(device.snapshot->replay);
}

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

/// What advise does not look for: settings that can be simulated, else the line to look at first.
std::string next_without_advice(const Tables& tables, const DeviceAnalysis& device,
                                std::string_view folder) {
  if (lack_of_snapshot(device) == ReplayLack::kNothing)
    return "Next: gpumemprof whatif --sweep tries other allocator settings.";
  const std::vector<HolderLine> lines = group_by_line(device.holders_at_peak, tables);
  if (lines.empty() || lines[0].node == 0) return {};
  return fmt::format("Next: look at {} first: it held {} ({}) at the peak, the most of all lines.",
                     headline_text(tables, lines[0].node, folder), format_bytes(lines[0].bytes),
                     format_percent(lines[0].bytes, device.figures.peak_bytes));
}

/// Of these it is the program that decides how many it holds.
bool is_data(Category category) {
  return category == Category::kInput || category == Category::kUnknown ||
         category == Category::kKvCache || category == Category::kActivation ||
         category == Category::kTemporary;
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
    const size_t before = out_.text.size() + 1;  // the space
    write_next();
    out_.next = out_.text.substr(std::min(before, out_.text.size()));
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
    if (made_in.phase != WorkPhase::kNone) text += fmt::format(", {}", phase_words(made_in.phase));
    if (!made_in.user_phase.empty()) {
      text += fmt::format(", in phase “{}”", printable(made_in.user_phase));
    }
    return text;
  }

  void sum_up_batch(const std::vector<CategoryHolder>& holders) {
    for (const CategoryHolder& holder : holders) {
      if (!is_of_batch(holder, tables_)) continue;
      (holder.category == Category::kActivation ? activations_ : others_of_batch_) += holder.bytes;
      cannot_checkpoint_ |= attribution_of(tables_, holder.stack).is_recomputed;
    }
  }

  /// The end of a sentence: the largest categories, or why they are not known.
  std::string category_words() {
    const DeviceCategories& known = device_.categories;
    std::string why = printable(known.why_not);
    if (known.is_known && !known.at_peak.empty()) {
      const CategorySums sums = category_sums(known.at_peak, tables_);
      if (sums.categories.size() > 1 || sums.categories[0].name != "unknown") {
        has_categories_ = true;
        sum_up_batch(known.at_peak);
        cannot_checkpoint_ |= are_activations_of_backward(known.at_peak, tables_);
        find_module(sums.modules);
        return ": " + largest_categories(sums.categories);
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
      text += fmt::format("{}{} {}", before, format_percent(bytes, peak_),
                          plural_of(groups[i].name));
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
      if (bytes == 0 || bytes < peak_ / kLeastShare) continue;
      const auto mapped = std::ranges::find_if(
          holders, [&](const Holder& holder) { return maps_file(tables_, holder.stack); });
      say(fmt::format("{}{} are files that {} maps; only the pages that are touched take memory.",
                      format_bytes(figure("mapped_file_bytes", bytes)),
                      &other == &device_ ? "" : " more",
                      headline_text(tables_, leak_line(tables_, mapped->stack), folder_)));
      return;
    }
  }

  const char* or_checkpointing() const { return cannot_checkpoint_ ? "" : " or checkpointing"; }

  /// What goes with a step is what the size of a batch decides.
  void write_next() {
    const PeakWork& work = device_.categories.peak;
    const bool knows_step = has_categories_ && work.is_known && work.step_ended;
    const uint64_t freed = knows_step ? figure("freed_in_step_bytes", work.freed_in_step_bytes) : 0;
    const uint64_t of_batch = activations_ + others_of_batch_;
    const auto& refused = analysis_.ends.refused;
    if (!refused.empty() && refused[0].requested && is_wrong_size(*refused[0].requested)) {
      return say(fmt::format("Next: check the shapes and sizes of the request that was refused; "
                             "{} is more than an ordinary machine has.",
                             format_bytes(refused[0].requested->least_bytes)));
    }
    const Finding* worst = worst_finding();
    const bool is_of_no_line =
        worst && worst->kind == FindingKind::kSteadyGrowth && worst->stack == 0;
    const bool was_refused = !refused.empty() || refused_by_replay() != 0;
    if (is_of_no_line && !was_refused && say_what_is_wasted()) return;
    if (worst) {
      return say((worst->kind == FindingKind::kLeak ? "Next: stop the leak: " : "Next: ") +
                 printable(worst->fix) + '.');
    }
    const OomExplanation* oom = explained_refusal();
    if (oom && say_what_stood_in_the_way(*oom)) return;
    if (oom && !was_near_the_peak(*oom)) {
      if (say_who_held_half_at(*oom)) return;
      return say_lower(oom->asked_bytes);
    }
    if (!was_refused && say_what_is_wasted()) return;
    // What an optimizer needs for its step, and gradients, are those of the weights, whatever the
    // batch.
    const bool is_in_optimizer =
        attribution_of(tables_, work.stack).phase == WorkPhase::kOptimizer;
    const bool is_of_the_batch = !is_in_optimizer && 2 * of_batch >= freed;
    if (knows_step && say_what_data_stays(freed)) return;
    if (knows_step && is_of_the_batch && freed >= peak_ / kLeastShare) {
      return say(fmt::format("Next: a smaller batch{}; {} were freed before step {} ended{}.",
                             activations_ >= others_of_batch_ ? or_checkpointing() : "",
                             share(freed), work.step, level_));
    }
    if (knows_step && !is_in_optimizer && say_what_went_with_the_step(freed))
      return;
    const uint64_t requested = refused.empty()          ? refused_by_replay()
                               : !refused[0].requested ? 0
                                                       : refused[0].requested->least_bytes;
    // More than all that was live: no smaller batch makes room for it.
    if ((!refused.empty() || requested != 0) && requested <= peak_ && of_batch >= peak_ / 2 &&
        of_batch != 0) {
      return say(fmt::format("Next: a smaller batch{}; {} are activations, inputs and temporaries.",
                             or_checkpointing(), share(figure("batch_bytes", of_batch))));
    }
    if (requested != 0 && (oom ? say_who_held_half_at(*oom) : say_who_held_half(requested))) return;
    if (requested != 0) return say_lower(requested);
    if (lack_of_snapshot(device_) == ReplayLack::kAllocations)
      return say("Next: record the history with torch.cuda.memory._record_memory_history().");
    const bool was_looked_for_in_vain = advice_ && advice_->applies && advice_->advice.empty() &&
                                        advice_->not_looked_because.empty();
    const std::string next =
        is_jax(device_at(tables_, device_.device))
            ? "Next: gpumemprof.jax_memory_analysis() tells what XLA plans for a compiled function."
        : was_looked_for_in_vain ? next_without_advice(tables_, device_, folder_)
                                 : kNextIsAdvice;
    if (!next.empty()) say(next);
  }

  /// The largest advice that has no price. That of a late backward pass has a condition, no price.
  bool say_what_is_wasted() {
    out_.asks_for_advice = true;
    if (!advice_) return false;
    const Advice* best = nullptr;
    for (const Advice& one : advice_->advice) {
      const bool has_price = one.kind == "checkpointing" ||  // it computes again
                             (!one.cost.empty() && one.kind != "late_backward");
      const bool is_here = one.device == device_.device && !one.is_of_reserved;
      if (is_here && !has_price && one.bytes > (best ? best->bytes : 0)) best = &one;
    }
    if (!best) return false;
    const bool is_at_most = best->basis == SavingBasis::kAtStake;
    say(fmt::format("Next: {}{}. That saves {}{} of the peak{}.",
                    printable(uncapitalized(best->fix)),
                    best->cost.empty() ? "" : "; " + best->cost, is_at_most ? "at most " : "",
                    share(figure("saved_bytes", best->bytes)),
                    is_at_most ? "" : fmt::format(", {}", saving_basis_name(best->basis))));
    return true;
  }

  /// The line with most data; node 0: none is known.
  HolderLine largest_data() const {
    std::vector<Holder> data;
    for (const CategoryHolder& holder : device_.categories.at_peak) {
      if (is_data(holder.category)) data.push_back({holder.stack, holder.bytes, holder.count});
    }
    std::vector<HolderLine> lines = group_by_line(data, tables_);
    return lines.empty() ? HolderLine{} : std::move(lines[0]);
  }

  /// Where the line with most data holds more than the step freed, a batch is not what to change.
  bool say_what_data_stays(uint64_t freed) {
    const HolderLine line = largest_data();
    if (line.node == 0 || line.bytes < freed + peak_ / kLeastShare) return false;
    const uint64_t kept = figure("data_line_end_bytes", bytes_before_exit_of(line.node));
    say(fmt::format("Next: hold less of what {} makes; it held {} at the peak{}{}.",
                    headline_text(tables_, line.node, folder_),
                    share(figure("data_line_bytes", line.bytes)),
                    kept == 0 ? ""
                              : fmt::format(" and {} after the last allocation", format_bytes(kept)),
                    level_));
    return true;
  }

  uint64_t bytes_before_exit_of(uint32_t node) const {
    const uint32_t frame = tables_.stacks.node(node).frame;
    for (const HolderLine& line : group_by_line(device_.holders_before_exit, tables_)) {
      if (line.node != 0 && tables_.stacks.node(line.node).frame == frame) return line.bytes;
    }
    return 0;
  }

  /// Where one line outside of the passes has most of what the step freed.
  bool say_what_went_with_the_step(uint64_t freed) {
    const HolderLine line = largest_data();
    if (line.node == 0 || freed < peak_ / kLeastShare || line.bytes < freed / 2) return false;
    say(fmt::format("Next: hold less at once at {}; {} were freed before step {} ended{}.",
                    headline_text(tables_, line.node, folder_), share(freed),
                    device_.categories.peak.step, level_));
    return true;
  }

  /// Where one line has half of the peak, and more than was refused.
  bool say_who_held_half(uint64_t requested) {
    const std::vector<HolderLine> lines = group_by_line(device_.holders_at_peak, tables_);
    if (lines.empty() || lines[0].node == 0 || lines[0].bytes < std::max(peak_ / 2, requested))
      return false;
    say(fmt::format("Next: hold less of what {} makes; it held {} at the peak.",
                    headline_text(tables_, lines[0].node, folder_), share(lines[0].bytes)));
    return true;
  }

  void say_lower(uint64_t requested) {
    say(fmt::format("Next: lower the request that was refused ({}), or what was live beside it.",
                    format_bytes(requested)));
  }

  /// Of this device, the refusal that the report begins with; null where no replay explains it.
  const OomExplanation* explained_refusal() const {
    const auto& refused = analysis_.ends.refused;
    if (!refused.empty()) {
      const auto own = std::ranges::find_if(refused, [&](const RefusedRequest& one) {
        return one.told && one.told->device == device_.device;
      });
      return own == refused.end() ? nullptr : explanation_of(*own, analysis_);
    }
    const SnapshotDevice* snapshot = device_.snapshot.get();
    if (!snapshot || !snapshot->is_consistent || snapshot->ooms.empty()) return nullptr;
    return &snapshot->ooms.front();
  }

  /// What is known of the peak then holds for the refusal, too.
  bool was_near_the_peak(const OomExplanation& oom) const {
    return oom.moment.figures.requested_bytes >= peak_ - peak_ / kLeastShare;
  }

  /// Where enough was free, but not for this request: who keeps it so.
  bool say_what_stood_in_the_way(const OomExplanation& oom) {
    if (const auto& other = oom.other_cache) {
      if (!other->is_private && !other->is_of_stream) return false;
      say(fmt::format("Next: {}; {} were free in one piece in {}.",
                      other->is_private
                          ? "keep less in the private pool (a CUDA graph or a MemPool), or release "
                            "it when it is no longer needed"
                          : "allocate on one stream and let the others only compute",
                      format_bytes(other->piece_bytes), other->place));
      return true;
    }
    if (oom.cause != RefusalCause::kFragmentation || oom.fitting_bytes != 0) return false;
    const std::vector<PinningStack> lines = pinning_lines(oom.moment.segments, tables_);
    if (lines.empty() || lines[0].stack == 0) return false;
    const uint64_t left = oom.room.bytes - oom.moment.figures.reserved_bytes;
    const bool is_enough =
        lines[0].alone_bytes + lines[0].live_bytes + left >= oom.asked_bytes;
    if (!is_enough || lines[0].alone_bytes < lines[0].live_bytes) return false;
    say(fmt::format("Next: free or move what {} keeps; its {} pinned {} in {} when the request was "
                    "refused.",
                    headline_text(tables_, lines[0].stack, folder_),
                    format_bytes(lines[0].live_bytes), format_bytes(lines[0].pinned_bytes),
                    format_plural(lines[0].segments, "segment")));
    return true;
  }

  /// The same as say_who_held_half(), of what was live when the request was refused.
  bool say_who_held_half_at(const OomExplanation& oom) {
    const uint64_t live = oom.moment.figures.active_bytes;
    const std::vector<HolderLine> lines = group_by_line(oom.moment.holders, tables_);
    if (lines.empty() || lines[0].node == 0 ||
        lines[0].bytes < std::max(live / 2, oom.asked_bytes))
      return false;
    say(fmt::format("Next: hold less of what {} makes; it held {} ({}) when {} were refused.",
                    headline_text(tables_, lines[0].node, folder_), format_bytes(lines[0].bytes),
                    format_percent(lines[0].bytes, live), format_bytes(oom.asked_bytes)));
    return true;
  }

  bool is_here(const Finding& finding) const {
    return finding.device == device_.device ||
           std::ranges::find(device_.parts, finding.device) != device_.parts.end();
  }

  /// The request of this device that a snapshot has as refused; 0: none.
  uint64_t refused_by_replay() const {
    for (const Finding& finding : analysis_.findings) {
      if (finding.kind == FindingKind::kOutOfMemory && is_here(finding))
        return finding.bytes.value_or(0);
    }
    return 0;
  }

  /// Of this device, with something to do; null where there is none. They are sorted.
  const Finding* worst_finding() const {
    for (const Finding& finding : analysis_.findings) {
      if (is_here(finding) && finding.severity != Severity::kInfo && !finding.fix.empty())
        return &finding;
    }
    return nullptr;
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
    level_ = fmt::format(", {} were live at the ends of steps {} to {} (the median)",
                         format_bytes(steady), levels[levels.size() / 4].step, levels.back().step);
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const DeviceAnalysis& device_;
  const std::string_view folder_;
  const AdviceReport* const advice_;
  const uint64_t peak_;
  bool has_categories_ = false;
  uint64_t activations_ = 0, others_of_batch_ = 0;  ///< at the peak
  bool cannot_checkpoint_ = false;  ///< the program does so already, or it would save nothing
  std::string level_;   ///< that between steps: the end of a sentence
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
  std::string next = explain_peak(analysis, tables, device, folder).next;
  return next == kNextIsAdvice ? next_without_advice(tables, device, folder) : next;
}

}  // namespace gpumemprof
