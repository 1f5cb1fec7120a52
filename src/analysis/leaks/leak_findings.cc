#include "analysis/leaks/leak_findings.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/finding_figure.h"
#include "analysis/held_attempt.h"
#include "analysis/leaks/leak_groups.h"
#include "analysis/leaks/leak_limit.h"
#include "analysis/statistics/worth.h"
#include "base/size.h"
#include "trace/holder_lines.h"
#include "trace/process_end.h"

namespace gpumemprof {
namespace {

uint64_t rounded(double value) {
  return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0;
}

double to_thousandths(double value) { return std::round(value * 1000) / 1000; }

/// How sure Mann-Kendall's test is that there is a trend, one-sided. Never 1: it is no proof.
double confidence_of(double z) { return std::min(0.99, 1 - std::erfc(z / std::sqrt(2.0)) / 2); }

/// Live on each device right after its process's last allocation, as all figures of a leak are.
using HeldBytes = std::map<std::pair<uint32_t, uint16_t>, uint64_t>;  // by process, device

HeldBytes held_bytes(const std::vector<ProcessHistory>& histories) {
  HeldBytes bytes;
  for (const ProcessHistory& history : histories) {
    for (const SiteHistory& site : history.sites) {
      bytes[{history.process, site.device}] += site.live_bytes;
    }
  }
  return bytes;
}

/// Where the program ended for want of that device's memory, the bytes of its last request; 0 where
/// none of its requests was refused.
std::optional<uint64_t> ended_by(uint16_t index, const ProgramEnds& ends, const Tables& tables,
                                 const Analysis& analysis) {
  const Device& device = tables.devices[index];
  const DeviceAnalysis* of = find_device(analysis, index);
  const Refusal* last = !of || of->refusals.empty() ? nullptr : &of->refusals.back();
  if (ended_for_want_of(device, ends, tables.processes) ||
      (last && gave_up_after(last->event, last_work_event(*of, ends), device.process, ends,
                             tables.processes)))
    return last ? last->size_bytes : 0;
  return std::nullopt;
}

void add_limit(const Leak& leak, const LeakLimit& limit, Finding* finding) {
  if (!limit.why_unknown.empty()) {
    finding->facts.emplace_back("limit", "unknown, because " + limit.why_unknown);
    return;
  }
  finding->evidence.emplace_back("limit_bytes", *limit.limit_bytes);
  if (limit.steps_left) finding->evidence.emplace_back("steps_until_limit", *limit.steps_left);
  if (limit.seconds_left) {
    finding->evidence.emplace_back("seconds_until_limit", *limit.seconds_left);
  }
  if (limit.steps_left && *limit.steps_left <= leak.steps) end_again(finding);
}

/// A loop that loads data and a process that got to its end: what grew has stopped.
bool has_stopped(const Finding& finding, uint32_t process, const Tables& tables) {
  return finding.kind == FindingKind::kGrowthInLoop && process < tables.processes.size() &&
         ended_in_order(tables, tables.processes[process]);
}

/// Known without a trend: the blocks themselves are there.
Finding kept_gradients_finding(const KeptGradients& kept, const Tables& tables) {
  return {.kind = FindingKind::kLeak,
          .severity = Severity::kInfo,
          .name = "gradients_kept",
          .title = "gradients made at " + short_line(tables, kept.node) +
                   " stay allocated from step to step (zero_grad(set_to_none=False)): " +
                   format_bytes(kept.bytes) + " that a forward pass could use",
          .bytes = kept.bytes,
          .evidence = {{"blocks", kept.blocks}, {"steps", kept.steps}},
          .confidence = 0.9,
          .stack = kept.node,
          .fix = "call zero_grad(set_to_none=True), the default, right after the optimizer's step",
          .device = kept.device};
}

/// "train.py:41 keeps 2 KiB", "train.py:41 and 3 more lines keep 9 KiB", and without a stack "blocks
/// of 2 MiB without a stack keep 2 MiB".
std::string who_keeps(const LeakGroup& group, const Tables& tables) {
  std::string text = short_line(tables, group.whole.node);
  const std::vector<LeakStack>& stacks = group.lines.front()->stacks;
  const uint64_t told_by_bytes = stacks.front().told_by_bytes;
  if (told_by_bytes != 0) {
    const size_t sizes = stacks.size();
    text = "blocks of " +
           (sizes == 1 ? format_bytes(told_by_bytes) : std::to_string(sizes) + " sizes") +
           " without a stack";
  }
  const size_t more = group.lines.size() - 1;
  if (more == 0) return text + (told_by_bytes != 0 ? " keep " : " keeps ");
  return text + " and " + std::to_string(more) +
         (more == 1 ? " more line keep " : " more lines keep ");
}

struct Kind {
  FindingKind kind;
  const char* what_repeats;
  const char* title;
  const char* fix;
  std::optional<FewTimes> few = {};  ///< of what comes a few times
};

/// What it holds of the group's lines when the deque that keeps them has all its entries; nothing
/// where no deque does.
std::optional<uint64_t> bytes_when_full(const LeakGroup& group) {
  constexpr double kMostBytes = 1e18;  // a file may say anything
  const double full = group.evidence.full_bytes;
  if (full <= 0 || full > kMostBytes) return std::nullopt;
  // Live blocks that another name is nearer to are in it all the same.
  return std::max(group.whole.live_bytes, rounded(full));
}

/// What it holds, or would hold after a long run, or when what it fills is full.
double cost_of(const LeakGroup& group) {
  const Leak& leak = group.whole;
  const double cost = cost_of_growth(static_cast<double>(leak.live_bytes), leak.bytes_a_step);
  const auto full = bytes_when_full(group);
  return full ? std::min(cost, static_cast<double>(*full)) : cost;
}

/// Less than one number of four bytes a step.
bool is_nothing(const LeakGroup& group) {
  constexpr double kLeastBytesAStep = 3.5;  // told as 4
  return cost_of(group) < kLeastBytesAStep * kLongRunSteps;
}

/// The first rounds of TensorFlow that nobody marked: what is live may wait for Python's garbage
/// collector, as the iterator of each predict() of Keras does.
bool may_wait_for_collector(const LeakGroup& group, const Tables& tables) {
  constexpr uint64_t kLeastRoundsToTell = 25;
  const Leak& leak = group.whole;
  return leak.period_from == Period::From::kRounds && !group.evidence.in_tracing &&
         leak.steps + leak.most().warm_up_steps < kLeastRoundsToTell &&
         is_tensorflow(tables.devices[leak.device]);
}

/// A leak of a few bytes is true and harmless: a warning is what would matter in a long run. One
/// that is too small for run's summary would have to grow to more.
Severity severity_of(const LeakGroup& group, const Finding& finding, const Tables& tables,
                     const Analysis& analysis) {
  const Leak& leak = group.whole;
  if (leak.most().slows) return Severity::kInfo;  // a cache that fills
  if (may_wait_for_collector(group, tables)) return Severity::kInfo;
  const uint64_t peak_bytes = peak_bytes_of(analysis, leak.device);
  constexpr double kLeastShareIfSmall = 0.1;
  const double least_share =
      is_small_leak(finding, peak_bytes) ? kLeastShareIfSmall : kLeastWarningShare;
  return is_worth_warning(cost_of(group), peak_bytes, least_share) ? Severity::kWarning
                                                                   : Severity::kInfo;
}

Kind kind_of(const LeakGroup& group) {
  const LeakName& bug = *group.name;
  if (bug.kind != FindingKind::kLeak) return {bug.kind, "step", bug.title, bug.fix};
  if (group.whole.is_after_steps && may_be_result(bug, group.evidence)) {
    return {FindingKind::kGrowthInLoop, "round of a loop",
            "it is made after the last step and may be a result that is needed", bug.fix};
  }
  // The weights of each fold's best epoch, or the like. The outputs of each epoch's validation are
  // most often forgotten.
  const auto few = few_times(group.whole);
  const bool is_known = group.evidence.holder || group.evidence.is_used_again;
  if (few && is_known && !group.evidence.in_module && may_be_result(bug, group.evidence)) {
    return {FindingKind::kGrowthInLoop, "step",
            group.evidence.is_used_again ? "later steps use it, so it may be needed"
                                         : "it may be a result that is needed",
            "if not all of them are needed, keep the best or the last one alone", few};
  }
  // A block that is copied into a larger one in every round is no data that is loaded, unless it is
  // used when the loop is over. No more are graphs of functions, and kernels.
  const bool may_be_data = (!group.evidence.grows_one_block || group.whole.is_used_after) &&
                           !group.evidence.in_tracing && !group.evidence.is_of_kernels;
  if (!group.whole.are_steps && may_be_data) {
    return {FindingKind::kGrowthInLoop, "round of a loop",
            "no step is known; it may be data being loaded",
            "mark the end of each step with gpumemprof.step()"};
  }
  return {bug.kind, "step", bug.title, bug.fix};
}

/// All that exceptions keep is the leak, also of lines whose growth is not even enough to be measured,
/// as those of models of other sizes. Absent where it is about what the lines keep.
std::optional<uint64_t> bytes_of_exceptions(const LeakGroup& group) {
  const LeakEvidence& e = group.evidence;
  if (!e.holder || e.holder->owner != "exception") return std::nullopt;
  const bool is_more = e.bytes_in_all > group.whole.live_bytes + group.whole.live_bytes / 4;
  return is_more ? std::optional(e.bytes_in_all) : std::nullopt;
}

/// "190 KiB more with every step", "2.23 MiB more once in 12 steps, 5 times".
std::string how_often(const Leak& leak, const Kind& kind) {
  if (!kind.few)
    return format_bytes(rounded(leak.bytes_a_step)) + " more with every " + kind.what_repeats;
  return format_bytes(kind.few->bytes) + " more once in " + std::to_string(kind.few->steps_apart) +
         " steps, " + std::to_string(kind.few->times) + " times";
}

/// It fills before there is no room, or nobody says how full it is: no forecast goes that far.
bool ends_by_itself(const LeakGroup& group, const Finding& finding, const Room& room) {
  const auto full = bytes_when_full(group);
  if (!full) return finding.kind == FindingKind::kFillsToLimit;
  return !room.limit_bytes || *full - group.whole.live_bytes <= room.free_bytes;
}

void add_entries(const LeakGroup& group, Finding* finding) {
  if (!is_in_filling_deque(group.evidence)) return;
  const TensorHolder& deque = *group.evidence.holder;
  finding->evidence.emplace_back("entries", deque.entries);
  finding->evidence.emplace_back("most_entries", deque.most_entries);
  if (!deque.limit.empty()) finding->facts.emplace_back("entries_limit", deque.limit);
  const auto full = bytes_when_full(group);
  if (!full) return;
  finding->evidence.emplace_back("full_bytes", *full);
  constexpr double kMostSteps = 1e15;
  const double steps =
      static_cast<double>(*full - group.whole.live_bytes) / group.whole.bytes_a_step;
  if (steps >= 1 && steps < kMostSteps)
    finding->evidence.emplace_back("steps_until_full", rounded(steps));
}

uint64_t sum_of(uint64_t LeakStack::*figure, const Leak& leak) {
  uint64_t sum = 0;
  for (const LeakStack& stack : leak.stacks) sum += stack.*figure;
  return sum;
}

/// A block exists twice while it is copied into a larger one.
constexpr uint64_t kCopiesOfBlock = 2;

/// A program that was ended without a request: what had less than one part in so many of the peak
/// did not end it.
constexpr uint64_t kLeastShareOfEnd = 10;

/// The fact of what is no used batch.
constexpr const char* kUsed = "used";

/// All but the limit and the holder.
Finding leak_finding(const LeakGroup& group, const Tables& tables, const Analysis& analysis) {
  const Leak& leak = group.whole;
  const uint64_t a_step = rounded(leak.bytes_a_step);
  const Kind kind = kind_of(group);
  const auto of_exceptions = bytes_of_exceptions(group);
  const bool is_leak = kind.kind == FindingKind::kLeak;
  const bool is_part = of_exceptions || group.evidence.in_tracing;
  Finding finding{.kind = kind.kind,
                  .name = is_leak ? group.name->name : "",
                  .title = who_keeps(group, tables) + (is_part ? "at least " : "") +
                           how_often(leak, kind) + ": " + kind.title,
                  .bytes = of_exceptions.value_or(leak.live_bytes),
                  .evidence = {{"bytes_a_step", a_step},
                               {"grown_bytes", leak.grown_bytes},
                               {"steps", leak.steps},
                               {"warm_up_steps", leak.most().warm_up_steps},
                               {"stacks", leak.stacks.size()},
                               {"rises", leak.most().rises},
                               {"points", leak.most().points}},
                  .confidence = confidence_of(leak.most().z),
                  .stack = leak.node,
                  .fix = kind.fix,
                  .device = leak.device};
  if (of_exceptions) finding.evidence.emplace_back("exceptions_bytes", *of_exceptions);
  if (is_leak) finding.severity = severity_of(group, finding, tables, analysis);
  // Where each block replaces a smaller one, those that are left at the end say nothing.
  if (group.evidence.grows_one_block) {
    uint64_t blocks = 0;
    for (const LeakStack& stack : leak.stacks)
      blocks += stack.survivors <= kCopiesOfBlock ? 1 : stack.survivors;
    finding.evidence.emplace_back("replaced_blocks", blocks);
  } else {
    finding.evidence.emplace_back("survivors", sum_of(&LeakStack::survivors, leak));
    finding.rates.emplace_back("survivors_a_step", to_thousandths(leak.survivors_a_step));
  }
  if (!group.evidence.module.empty()) finding.facts.emplace_back("module", group.evidence.module);
  if (leak.period_from == Period::From::kRounds) {
    finding.facts.emplace_back("round", short_line(tables, leak.round_node));
  }
  if (kind.few) {
    finding.evidence.emplace_back("times", kind.few->times);
    finding.evidence.emplace_back("steps_apart", kind.few->steps_apart);
  }
  if (group.evidence.is_used_again) finding.facts.emplace_back(kUsed, "in later steps");
  add_entries(group, &finding);
  finding.facts.emplace_back("steps_from", leak.period_from == Period::From::kMarks
                                               ? "steps of optimizers, or marked ones"
                                           : leak.is_after_steps
                                               ? kRoundsAfterSteps
                                               : "rounds of a line, as no steps are marked");
  for (const Leak* line : group.lines) {
    // The blocks of one size without a stack are no stack's.
    for (const LeakStack& one : line->stacks)
      if (one.told_by_bytes == 0) finding.stacks.push_back(one.stack);
  }
  if (group.lines.size() == 1) return finding;
  for (const Leak* line : group.lines) {
    finding.lines.push_back({line->node, short_line(tables, line->node), line->live_bytes,
                             rounded(line->bytes_a_step)});
  }
  return finding;
}

/// Whether the block is as many times what it grows by in a step as what is kept is: it began with
/// it, and has a fixed part of its size. Data that gets longer has a length to begin with.
bool is_in_proportion(const Leak& block, const Leak& kept) {
  constexpr double kApart = 2;  // steps: what is kept may be made before it or after it
  const auto steps_of = [](double bytes, double bytes_a_step) { return bytes / bytes_a_step; };
  const double steps = steps_of(static_cast<double>(kept.live_bytes), kept.bytes_a_step);
  return std::ranges::all_of(block.stacks, [&](const LeakStack& one) {
    const double of_block =
        steps_of(static_cast<double>(one.largest_bytes), one.growth.bytes_a_step);
    return std::abs(of_block - steps) <= kApart;
  });
}

/// The leak from all of which each step makes this block anew, and so larger each time: it is in
/// proportion to what is kept, or a variable has it with the graph of its step and passes drop larger
/// blocks, too. Null where there is none.
const LeakGroup* cause_of(const LeakGroup& group, const std::vector<LeakGroup>& groups) {
  const LeakEvidence& e = group.evidence;
  if (!e.grows_one_block || !e.trains_in_steps) return nullptr;
  const bool is_of_step = group.whole.a_size_rises && e.holder && e.holder->with_graph != 0;
  const bool is_of_no_bug =
      group.name->kind == FindingKind::kSizesRise || std::string_view(group.name->name) == kGrowth;
  const auto is_cause = [&](const LeakGroup& other) {
    return !other.evidence.grows_one_block && other.name->kind == FindingKind::kLeak &&
           other.whole.process == group.whole.process && other.whole.device == group.whole.device &&
           other.whole.is_after_steps == group.whole.is_after_steps && !is_nothing(other) &&
           (is_of_step || (is_of_no_bug && is_in_proportion(group.whole, other.whole)));
  };
  const auto cause = std::ranges::find_if(groups, is_cause);
  return cause == groups.end() ? nullptr : &*cause;
}

/// By cause: "train.py:24, by 16.0 KiB a step".
std::map<const LeakGroup*, std::string> what_grows_with(
    const std::vector<const LeakGroup*>& causes, const std::vector<LeakGroup>& groups,
    const Tables& tables) {
  std::map<const LeakGroup*, std::string> out;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!causes[i]) continue;
    std::string& text = out[causes[i]];
    text += (text.empty() ? "" : "; ") + short_line(tables, groups[i].whole.node) + ", by " +
            format_bytes(rounded(groups[i].whole.bytes_a_step)) + " a step";
  }
  return out;
}

/// What the stacks of a leak have of the device's peak, with what they make and drop.
std::optional<uint64_t> stacks_bytes_at_peak(const Finding& finding, const DeviceAnalysis& device) {
  if (finding.stacks.empty() || finding.device != device.device) return {};
  const absl::flat_hash_set<uint32_t> stacks(finding.stacks.begin(), finding.stacks.end());
  uint64_t bytes = 0;
  for (const Holder& holder : device.holders_at_peak)
    if (stacks.contains(holder.stack)) bytes += holder.bytes;
  return bytes;
}

}  // namespace

void add_leak_findings(const std::vector<ProcessHistory>& histories, const Tables& tables,
                       const LeakContext& context, Analysis* analysis) {
  const HolderStacks& holders = context.holders;
  const std::vector<Leak> leaks = find_leaks(histories, tables);
  HeldBytes held = held_bytes(histories);
  const ToldOfStack told_of{
      .is_cache = [&](uint32_t stack) { return context.categories.is_cache(stack); },
      .is_saved = [&](uint32_t stack) { return context.categories.is_saved(stack); },
      .is_used_again = [&](uint32_t stack) { return context.categories.is_saved_again(stack); },
      .gradients = [&](uint32_t stack) { return context.categories.gradients_of(stack); }};
  const std::vector<LeakGroup> groups = group_leaks(leaks, tables, holders, told_of);
  std::vector<const LeakGroup*> causes;
  for (const LeakGroup& group : groups) causes.push_back(cause_of(group, groups));
  const auto grow_with = what_grows_with(causes, groups, tables);
  for (size_t i = 0; i < groups.size(); ++i) {
    const LeakGroup& group = groups[i];
    if (is_nothing(group) || causes[i]) continue;
    for (const uint32_t stack : group.caches) context.categories.tell_cache(stack);
    Finding finding = leak_finding(group, tables, *analysis);
    if (const auto others = grow_with.find(&group); others != grow_with.end())
      finding.facts.emplace_back("grows_with_it", others->second);
    const Device& device = tables.devices[group.whole.device];
    std::optional<uint64_t> refused_bytes;
    if (context.ends) {
      refused_bytes = ended_by(group.whole.device, *context.ends, tables, *analysis);
    }
    if (refused_bytes) {
      // The limit was reached. Without what is kept there was room for the request.
      const uint64_t least = *refused_bytes != 0
                                 ? *refused_bytes
                                 : peak_bytes_of(*analysis, group.whole.device) / kLeastShareOfEnd;
      if (finding.bytes.value_or(0) >= least) end_again(&finding);
    } else if (finding.kind != FindingKind::kSizesRise &&
               !has_stopped(finding, group.whole.process, tables)) {
      // A step's own peak grows faster than what it leaves.
      const Room room = room_of(group.whole.device, tables,
                                held[{group.whole.process, group.whole.device}],
                                context.capacity_bytes, context.host_rooms);
      LeakLimit limit = limit_of(group.whole, room);
      if (limit.limit_bytes && bytes_of_exceptions(group))
        limit.why_unknown = "the exceptions keep more than these lines";
      if (limit.limit_bytes && group.evidence.in_tracing)
        limit.why_unknown = "most of what traced graphs keep is malloc's, and not in these figures";
      if (!ends_by_itself(group, finding, room)) add_limit(group.whole, limit, &finding);
    }
    if (is_host_blocks(device) || is_tensorflow(device) || is_jax(device)) {
      finding.facts.emplace_back("holder",
                                 "unknown, because only holders of PyTorch's tensors are looked up");
      if (group.whole.stacks.front().told_by_bytes != 0) {
        finding.fix += "; jax.config.update(\"jax_cpu_enable_async_dispatch\", False) names the line "
                       "of blocks whose inputs are ready";
      }
      const bool is_named = group.evidence.in_tracing;
      if (finding.kind == FindingKind::kLeak && is_host_blocks(device) && !is_named)
        finding.fix = "free these blocks, or limit what keeps them";
    } else {
      // The evidence is of the first line.
      const uint64_t live_blocks = sum_of(&LeakStack::live_count, *group.lines.front());
      add_holder(group.evidence, group.container, live_blocks,
                 holders.of_process(group.whole.process, tables), &finding);
      add_views(group.evidence, &finding);
    }
    analysis->findings.push_back(std::move(finding));
  }
  for (const KeptGradients& kept : find_kept_gradients(histories, leaks, tables)) {
    Finding finding = kept_gradients_finding(kept, tables);
    if (is_small_leak(finding, peak_bytes_of(*analysis, kept.device))) continue;
    add_holder(holders.most_of(kept.process, kept.device, kept.stacks, tables),
               {}, kept.blocks, holders.of_process(kept.process, tables), &finding);
    analysis->findings.push_back(std::move(finding));
  }
}

std::optional<uint64_t> leak_bytes_at_peak(const Finding& finding, const DeviceAnalysis& device) {
  const auto at_peak = stacks_bytes_at_peak(finding, device);
  // One stack may make other blocks, too: a leak had no more at the peak than at the end, where it
  // was not dropped in between.
  const uint64_t* grown = find_figure(finding, "grown_bytes");
  if (!at_peak || !finding.bytes || !grown || *finding.bytes < *grown) return at_peak;
  return std::min(*at_peak, *finding.bytes);
}

bool is_small_part_of_peak(const Finding& finding, const DeviceAnalysis& device) {
  if (finding.kind != FindingKind::kLeak || finding.severity == Severity::kCritical) return false;
  const auto at_peak = leak_bytes_at_peak(finding, device);
  return at_peak && *at_peak < device.figures.peak_bytes / kWorthShare;
}

bool keeps_inputs(const Finding& finding, const DeviceAnalysis& device) {
  const auto at_peak = stacks_bytes_at_peak(finding, device);
  // Beside batches there may be graphs.
  const bool may_have_graphs = finding.name == "activations_kept";
  if (finding.name != kGrowth && !may_have_graphs) return false;
  if (!at_peak || find_fact(finding, kUsed) || find_fact(finding, kMade)) return false;
  const absl::flat_hash_set<uint32_t> stacks(finding.stacks.begin(), finding.stacks.end());
  uint64_t input_bytes = 0;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (holder.category == Category::kInput && stacks.contains(holder.stack))
      input_bytes += holder.bytes;
  }
  return may_have_graphs ? 4 * input_bytes > 3 * *at_peak : 2 * input_bytes > *at_peak;
}

void tell_inputs(const Tables& tables, Analysis* analysis) {
  for (Finding& finding : analysis->findings) {
    if (finding.kind != FindingKind::kLeak || tells_views(finding)) continue;
    const DeviceAnalysis* device = find_device(*analysis, finding.device);
    if (!device || !keeps_inputs(finding, *device)) continue;
    finding.name = kGrowth;
    finding.title.resize(finding.title.find(": "));
    finding.title += ": batches of every step are kept";
    finding.fix = "cap how many batches are kept, or keep numbers or paths instead of them";
    if (finding.stacks.empty()) continue;
    const uint32_t made = python_node(tables, finding.stacks.front());
    if (made != 0 && tables.stacks.node(made).frame != tables.stacks.node(finding.stack).frame)
      finding.facts.emplace_back("made_in", short_line(tables, made));
  }
}

void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices) {
  for (DeviceAnalysis& device : *devices) {
    if (device.refusals.empty()) continue;
    absl::flat_hash_map<uint32_t, const SiteHistory*> by_stack;
    for (const ProcessHistory& history : histories) {
      for (const SiteHistory& site : history.sites) {
        if (site.device == device.device && site.stack != 0) by_stack[site.stack] = &site;
      }
    }
    for (Refusal& refusal : device.refusals) {
      const auto known = by_stack.find(refusal.stack);
      if (known == by_stack.end()) continue;
      refusal.served_count = known->second->alloc_count;
      refusal.largest_served_bytes = known->second->largest_bytes;
    }
  }
}

}  // namespace gpumemprof
