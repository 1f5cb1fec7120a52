#include "report/describe/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/finding.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/oom_message/byte_range.h"
#include "analysis/replay/settings_study.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/replay/told_refusals.h"
#include "analysis/statistics/worth.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/snapshot_words.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// Absent without a replay, and beside a recording, in which advise finds more.
std::optional<ReplayLack> lack_of_snapshot(const DeviceAnalysis& device) {
  if (!device.snapshot || device.snapshot->is_recorded || !device.snapshot->is_replayed) return {};
  return lack_of(device.snapshot->replay);
}

/// Of these it is the program that decides how many it holds.
bool is_data(Category category) {
  return category == Category::kInput || category == Category::kUnknown ||
         category == Category::kKvCache || category == Category::kActivation ||
         category == Category::kTemporary;
}

class Decision {
 public:
  Decision(const Analysis& analysis, const Tables& tables, const DeviceAnalysis& device,
           std::string_view folder, const AdviceReport* advice, const PeakMakeup& makeup)
      : analysis_(analysis),
        tables_(tables),
        device_(device),
        folder_(folder),
        advice_(advice),
        makeup_(makeup),
        peak_(device.figures.peak_bytes),
        small_leak_(worst_finding(true)) {}

  NextStep find() {
    decide();
    if (small_leak_) {
      const std::string stop = stop_the_leak(*small_leak_) + printable(small_leak_->fix) + '.';
      if (out_.text.empty())
        say("Next: " + stop);
      else
        out_.then = "Then " + stop;
    }
    return std::move(out_);
  }

 private:
  void say(std::string sentence) { out_.text = std::move(sentence); }
  uint64_t figure(std::string name, uint64_t value) {
    out_.figures.emplace_back(std::move(name), value);
    return value;
  }
  std::string share(uint64_t bytes) const {
    return fmt::format("{} ({})", format_bytes(bytes), format_percent(bytes, peak_));
  }
  /// Not where advise looked for it and found none. Of a step that was refused it knows a part.
  const char* or_checkpointing() const {
    if (makeup_.cannot_checkpoint) return "";
    const auto is_it = [](const auto& one) { return one.kind == "checkpointing"; };
    const auto is_unknown = [](const auto& one) { return one.first == "checkpointing"; };
    const bool may_help = !was_looked_for() || !analysis_.ends.refused.empty() ||
                          std::ranges::any_of(advice_->advice, is_it) ||
                          std::ranges::any_of(advice_->unknown, is_unknown);
    return may_help ? " or checkpointing" : "";
  }
  bool was_looked_for() const {
    return advice_ && advice_->applies && advice_->not_looked_because.empty();
  }

  /// "stop the leak: "; one that came after the peak, or is a small part of it, does not lower it.
  std::string stop_the_leak(const Finding& worst) const {
    if (worst.kind != FindingKind::kLeak) return "";
    const auto at_peak = leak_bytes_at_peak(worst, device_);
    if (!at_peak || *at_peak >= peak_ / kSentenceShare) return "stop the leak: ";
    const std::string part = *at_peak == 0 ? "none of it" : format_bytes(*at_peak) + " of it";
    return fmt::format("stop the leak ({} in this peak): ", part);
  }

  /// What goes with a step is what the size of a batch decides.
  void decide() {
    const PeakWork& work = device_.categories.peak;
    const bool knows_step = makeup_.has_categories && work.is_known && work.step_ended;
    const uint64_t freed = knows_step ? figure("freed_in_step_bytes", work.freed_in_step_bytes) : 0;
    const uint64_t of_batch = makeup_.activations_bytes + makeup_.others_of_batch_bytes;
    const auto& refused = analysis_.ends.refused;
    if (!refused.empty() && refused[0].requested && is_wrong_size(*refused[0].requested)) {
      return say(fmt::format("Next: check the shapes and sizes of the request that was refused; "
                             "{} is more than an ordinary machine has.",
                             format_bytes(refused[0].requested->least_bytes)));
    }
    const Finding* worst = worst_finding(false);
    const bool is_of_no_line =
        worst && worst->kind == FindingKind::kSteadyGrowth && worst->stack == 0;
    const bool was_refused = !refused.empty() || refused_by_replay() != 0;
    if (is_of_no_line && !was_refused && say_what_is_wasted()) return;
    if (worst) return say("Next: " + stop_the_leak(*worst) + printable(worst->fix) + '.');
    if (say_what_the_host_has()) return;
    const OomExplanation* oom = explained_refusal();
    if (oom && say_what_stood_in_the_way(*oom)) return;
    if (oom && !was_near_the_peak(*oom)) {
      if (say_who_held_half_at(*oom)) return;
      return say_lower(oom->asked_bytes);
    }
    if (!was_refused && say_what_is_wasted()) return;
    // More than all that was live: nothing that is saved makes room for it.
    if (was_refused && !was_more_than_live() && say_what_is_wasted(peak_ / 2)) return;
    // What an optimizer needs for its step, and gradients, are those of the weights, whatever the
    // batch.
    const bool is_in_optimizer =
        attribution_of(tables_, work.stack).phase == WorkPhase::kOptimizer;
    const bool is_of_the_batch = !is_in_optimizer && 2 * of_batch >= freed;
    if (knows_step && say_what_data_stays(freed)) return;
    const bool is_of_activations = makeup_.activations_bytes >= makeup_.others_of_batch_bytes;
    if (knows_step && is_of_the_batch && freed >= peak_ / kSentenceShare) {
      return say(fmt::format("Next: a smaller batch{}. {} of the peak were freed before step {} ended{}.",
                             is_of_activations ? or_checkpointing() : "",
                             share(freed), work.step, makeup_.level));
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
    const bool is_of_jax = is_jax(device_at(tables_, device_.device));
    // No plan of a compiled function tells what a program keeps.
    if (const Finding* growth = is_of_jax ? growth_of_half() : nullptr)
      return say(fmt::format("Next: {}; what grows has {} after the last allocation.",
                             printable(growth->fix), share(*growth->bytes)));
    const std::string next =
        lacks_lines_of_jax() ? fmt::format("Next: {}.", kJaxOnYourThread)
        : is_of_jax
            ? "Next: gpumemprof.jax_memory_analysis() tells what XLA plans for a compiled function."
        : was_looked_for() && advice_->advice.empty()
            ? next_without_advice(tables_, device_, folder_)
            : kNextIsAdvice;
    if (!next.empty()) say(next);
  }

  /// An "info", as no step is known: what grew in a loop has half of the peak or more.
  const Finding* growth_of_half() const {
    const auto is_it = [&](const Finding& one) {
      return one.kind == FindingKind::kGrowthInLoop && is_here(one) && !one.fix.empty() &&
             one.bytes.value_or(0) >= peak_ / 2;
    };
    const auto found = std::ranges::find_if(analysis_.findings, is_it);
    return found == analysis_.findings.end() ? nullptr : &*found;
  }

  /// Half of the peak has no line, and might have one.
  bool lacks_lines_of_jax() const {
    uint64_t bytes = 0;
    for (const Holder& holder : device_.holders_at_peak) bytes += holder.stack == 0 ? holder.bytes : 0;
    return is_on_threads_of_jax(device_, tables_) && bytes >= peak_ / 2;
  }

  /// Where the host's memory grew by more than all that was recorded of it.
  bool say_what_the_host_has() {
    if (!is_host_memory(device_at(tables_, device_.device)) || lacks_lines_of_jax()) return false;
    for (const Finding& finding : analysis_.findings) {
      if (finding.kind != FindingKind::kUnrecordedGrowth || finding.bytes.value_or(0) <= peak_)
        continue;
      say(fmt::format("Next: {}; {} more than at the start are in no recorded allocator.",
                      printable(finding.fix), format_bytes(figure("unrecorded_bytes", *finding.bytes))));
      return true;
    }
    return false;
  }

  bool was_more_than_live() const {
    const auto& refused = analysis_.ends.refused;
    const bool is_asked = !refused.empty() && refused[0].requested;
    return (is_asked ? refused[0].requested->least_bytes : refused_by_replay()) > peak_;
  }

  /// The largest advice that has no price, if it saves so much. That of a late backward pass has a
  /// condition, no price.
  bool say_what_is_wasted(uint64_t least_bytes = 1) {
    out_.asks_for_advice = true;
    if (!advice_) return false;
    const Advice* best = nullptr;
    for (const Advice& one : advice_->advice) {
      const bool has_price = one.kind == "checkpointing" ||  // it computes again
                             (!one.cost.empty() && one.kind != "late_backward");
      const bool is_here = one.device == device_.device && !one.is_of_reserved;
      if (small_leak_ && one.stack == small_leak_->stack && one.bytes < peak_ / kWorthShare) continue;
      if (is_here && !has_price && one.bytes > (best ? best->bytes : 0)) best = &one;
    }
    if (!best || best->bytes < least_bytes) return false;
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
    if (line.node == 0 || line.bytes < freed + peak_ / kSentenceShare) return false;
    const uint64_t kept = figure("data_line_end_bytes", bytes_before_exit_of(line.node));
    say(fmt::format("Next: hold less of what {} makes; it held {} at the peak{}{}.",
                    headline_text(tables_, line.node, folder_),
                    share(figure("data_line_bytes", line.bytes)),
                    kept == 0
                        ? ""
                        : fmt::format(" and {} after the last allocation", format_bytes(kept)),
                    makeup_.level));
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
    if (line.node == 0 || freed < peak_ / kSentenceShare || line.bytes < freed / 2) return false;
    say(fmt::format("Next: hold less at once at {}. {} of the peak were freed before step {} ended{}.",
                    headline_text(tables_, line.node, folder_), share(freed),
                    device_.categories.peak.step, makeup_.level));
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
    return oom.moment.figures.requested_bytes >= peak_ - peak_ / kSentenceShare;
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

  bool has_task(const Finding& finding) const {
    return is_here(finding) && finding.severity != Severity::kInfo && !finding.fix.empty();
  }
  /// Of this device, with something to do; null where there is none. They are sorted.
  const Finding* worst_finding(bool is_small_part) const {
    for (const Finding& finding : analysis_.findings) {
      if (has_task(finding) && is_small_part_of_peak(finding, device_) == is_small_part)
        return &finding;
    }
    return nullptr;
  }

  const Analysis& analysis_;
  const Tables& tables_;
  const DeviceAnalysis& device_;
  const std::string_view folder_;
  const AdviceReport* const advice_;
  const PeakMakeup& makeup_;
  const uint64_t peak_;
  const Finding* const small_leak_;  ///< a small part of the peak, which has a remedy of its own
  NextStep out_;
};

}  // namespace

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

NextStep next_step(const Analysis& analysis, const Tables& tables, const DeviceAnalysis& device,
                   std::string_view folder, const AdviceReport* advice,
                   const PeakMakeup& makeup) {
  return Decision(analysis, tables, device, folder, advice, makeup).find();
}

}  // namespace gpumemprof
