#include "analysis/advice/practices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/advice/tensorflow_advice.h"
#include "analysis/categories/mapped_files.h"
#include "analysis/finding_figure.h"
#include "analysis/leaks/leaks.h"
#include "base/size.h"
#include "trace/device_place.h"
#include "trace/holder_lines.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastSavingBytes = 64 << 10;
constexpr uint64_t kLeastSavingShare = 20;  // one part in so many of the peak

uint64_t least_saving(uint64_t peak_bytes) {
  return std::max(kLeastSavingBytes, peak_bytes / kLeastSavingShare);
}

/// Settings of a pool are another question: `whatif` replays them.
void add_allocator_practices(const Analysis& analysis, AdviceReport* report) {
  bool has_fit = false;
  for (const Finding& finding : analysis.findings) {
    const bool is_fit = is_refusal(finding) && finding.is_fix_simulated;
    constexpr FindingKind kOfPool[] = {
        FindingKind::kFragmentation,       FindingKind::kCacheSlack,
        FindingKind::kGraphPoolSlack,      FindingKind::kStrandedStreamCache,
        FindingKind::kRecordStreamPending, FindingKind::kSettingsConflict};
    const bool is_of_pool = std::ranges::find(kOfPool, finding.kind) != std::end(kOfPool);
    if (finding.fix.empty() || !(is_fit ? !has_fit : is_of_pool)) continue;
    if (finding.name == kSegmentChurn) {
      report->advice.push_back({.kind = "allocator",
                                .title = finding.title,
                                .fix = finding.fix,
                                .evidence = finding.evidence,
                                .basis = SavingBasis::kTime,
                                .stack = finding.stack,
                                .device = finding.device});
    }
    if (!finding.bytes) continue;
    has_fit |= is_fit;
    const uint64_t* reserved_bytes =
        find_figure(finding, is_fit ? "reserved_bytes" : "peak_reserved_bytes");
    report->advice.push_back(
        {.kind = "allocator",
         .title = finding.title,
         .fix = finding.fix,
         .bytes = *finding.bytes,
         .basis = finding.is_fix_simulated ? SavingBasis::kSimulated : SavingBasis::kAtStake,
         .device = finding.device,
         .peak_bytes = finding.is_fix_simulated && reserved_bytes ? *reserved_bytes : 0,
         .makes_fit = is_fit,
         .is_of_reserved = true});
  }
}

/// What no recording of PyTorch's tells enough of.
constexpr std::pair<std::string_view, std::string_view> kUntold[] = {
    {"mixed_precision", "dtypes are not recorded"},
    {"quantization", "dtypes are not recorded"},
    {"pruning", "a recording does not say which weights are needed"},
    {"distributed", "a recording does not say how many devices there were"}};

bool shows_devices(const Analysis& analysis, const Tables& tables) {
  std::set<std::string> accelerators;  // processes may share one
  for (const DeviceAnalysis& one : analysis.devices) {
    if (one.device >= tables.devices.size()) continue;
    const Device& memory = tables.devices[one.device];
    if (memory.layer == Layer::kFramework && !is_host_memory(memory))
      accelerators.insert(device_name(memory));
  }
  return analysis.ranks || accelerators.size() > 1;
}

/// `main`: as PracticeEvidence::device.
void add_unknown(const Analysis& analysis, const Tables& tables, const DeviceAnalysis* main,
                 AdviceReport* report) {
  const auto add = [&](std::initializer_list<const char*> kinds, std::string_view why) {
    for (const char* kind : kinds) report->unknown.emplace_back(kind, why);
  };
  const bool is_snapshot = analysis.source.kind == SourceKind::kPytorchSnapshot;
  if (main && main->categories.is_by_rules) {
    add({"checkpointing", "fused_attention", "gradients_unused", "sparse_gradient"},
        why_no_modules(*main));
    add({"graph_kept", "graph_not_needed"},
        is_snapshot ? "a snapshot does not tell what autograd saved"
                    : "the recording does not tell what autograd saved");
    const uint64_t earlier = main->categories.earlier_gradient_bytes;
    const bool is_told = std::ranges::find(report->advice, "gradients_kept", &Advice::kind) !=
                         report->advice.end();
    if (!is_told && earlier >= least_saving(main->figures.peak_bytes)) {
      const std::string why = "gradients of an earlier step hold " + format_bytes(earlier) +
                              " at the peak; " + (is_snapshot ? "a snapshot" : "the recording") +
                              " does not tell whether they are needed";
      add({"gradients_kept"}, why);
    }
  }
  if (is_snapshot) {
    add({"leak"}, "leaks are looked for in recordings only");
    add({"prefetch"}, "a snapshot has no shared memory");
  }
  if (!batch_parts(analysis.ends))
    add({"smaller_batch"}, "what was left would not have held a sixteenth of the refused request");
  for (const auto& [kind, why] : kUntold) {
    const bool is_shown = kind == "distributed" && shows_devices(analysis, tables);
    report->unknown.emplace_back(kind, is_shown ? "what sharding saves is not simulated" : why);
  }
}

/// Most of what `one` holds at the peak is of stacks in `others`.
bool is_mostly_of(const DeviceAnalysis& device, const PracticeCandidate& one, const auto& others) {
  if (one.change.device != device.device) return false;
  uint64_t all = 0, theirs = 0;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (!one.change.group_of.contains(holder.stack)) continue;
    all += holder.bytes;
    if (others.contains(holder.stack)) theirs += holder.bytes;
  }
  return 2 * theirs > all;
}

/// A graph that is kept because a leak keeps its outputs is that leak.
void leave_graphs_to_leaks(const DeviceAnalysis& device, Candidates* candidates) {
  std::set<uint32_t> of_leaks;
  for (const PracticeCandidate& one : *candidates) {
    for (const auto& [stack, group] : one.change.group_of)
      if (one.is_of_leak) of_leaks.insert(stack);
  }
  std::erase_if(*candidates, [&](const PracticeCandidate& one) {
    return one.advice.kind == "graph_kept" && is_mostly_of(device, one, of_leaks);
  });
}

/// Where a leak keeps a graph that no backward pass used, it is better not to make it.
void leave_leaks_to_unused_graphs(const DeviceAnalysis& device, Candidates* candidates) {
  const auto graph = std::ranges::find_if(*candidates, [](const PracticeCandidate& one) {
    return one.advice.kind == "graph_not_needed";
  });
  if (graph == candidates->end()) return;
  const auto unused = graph->change.group_of;  // what is erased may move it
  const auto keeps_it = [&](const PracticeCandidate& one) {
    return one.is_of_leak && is_mostly_of(device, one, unused);
  };
  for (const PracticeCandidate& one : *candidates) {
    if (!keeps_it(one)) continue;
    const bool says_the_same = one.advice.fix.contains("no_grad");
    graph->advice.fix = (says_the_same ? "" : graph->advice.fix + "; or ") + one.advice.fix;
  }
  std::erase_if(*candidates, keeps_it);
}

/// Layers of a model that is not trained keep nothing for a backward pass once it has no gradients.
void leave_layers_to_unused_gradients(const DeviceAnalysis& device,
                                      std::vector<PracticeCandidate>* candidates) {
  const auto unused = std::ranges::find(*candidates, "gradients_unused", [](const auto& one) {
    return std::string_view(one.advice.kind);
  });
  if (unused == candidates->end()) return;
  const auto figure = [](const Advice& advice, std::string_view name) {
    const auto found =
        std::ranges::find(advice.evidence, name, [](const auto& one) { return one.first; });
    return found == advice.evidence.end() ? 0 : found->second;
  };
  // Of a model that others' results pass through, the graph stays.
  const uint64_t gradients = figure(unused->advice, "gradient_bytes");
  const uint64_t saved = unused->advice.bytes - std::min(unused->advice.bytes, gradients);
  const auto stacks = unused->change.group_of;  // what is erased may move it
  std::erase_if(*candidates, [&](const PracticeCandidate& one) {
    return one.advice.kind == "checkpointing" && is_mostly_of(device, one, stacks) &&
           2 * saved > figure(one.advice, "activation_bytes");
  });
}

/// Where two say that the same blocks should end with their step, or after their last use, the one
/// that saves more is told. A leak that is a part of more may have a fix of its own.
void leave_out_covered(Candidates* candidates) {
  const auto ends_with_step = [](const TraceChange& change) {
    return change.rule == TraceChange::Rule::kGoneAfterStep ||
           change.rule == TraceChange::Rule::kMadeAnewEachStep ||
           change.rule == TraceChange::Rule::kGoneAtNext ||
           (change.rule == TraceChange::Rule::kGoneWhileIdle && !change.group_of.empty());
  };
  const auto covers = [&](const TraceChange& all, const PracticeCandidate& one) {
    const TraceChange& part = one.change;
    if (all.device != part.device || !ends_with_step(all) || !ends_with_step(part)) return false;
    if (one.is_of_leak && all.group_of.size() != part.group_of.size()) return false;
    return std::ranges::all_of(
        part.group_of, [&](const auto& of_stack) { return all.group_of.contains(of_stack.first); });
  };
  std::ranges::stable_sort(*candidates, std::greater(),
                           [](const PracticeCandidate& one) { return one.advice.bytes; });
  Candidates told;
  for (PracticeCandidate& one : *candidates) {
    const bool is_covered = std::ranges::any_of(
        told, [&](const PracticeCandidate& more) { return covers(more.change, one); });
    if (!is_covered) told.push_back(std::move(one));
  }
  *candidates = std::move(told);
}

/// What a leak keeps no other practice saves: where it has most of the peak, only how to end it is
/// said.
void take_suggestions(const DeviceAnalysis* main, Candidates* candidates, AdviceReport* report) {
  std::erase_if(*candidates, [](const PracticeCandidate& one) {
    return one.advice.bytes < least_saving(one.advice.peak_bytes);
  });
  if (main) leave_leaks_to_unused_graphs(*main, candidates);
  if (main) leave_layers_to_unused_gradients(*main, candidates);
  leave_out_covered(candidates);
  const auto is_most = [](const PracticeCandidate& one) {
    return one.is_of_leak && 2 * one.advice.bytes > one.advice.peak_bytes;
  };
  std::map<uint16_t, std::string> why_of;  // by device
  for (const PracticeCandidate& one : *candidates) {
    if (is_most(one))
      why_of.try_emplace(one.advice.device, "a leak has " + format_bytes(one.advice.bytes) +
                                                " of the peak: end it, and record again");
  }
  for (PracticeCandidate& one : *candidates) {
    const auto why = why_of.find(one.advice.device);
    if (why == why_of.end() || one.is_of_leak) {
      report->advice.push_back(std::move(one.advice));
      continue;
    }
    std::pair left_out(one.advice.kind, why->second);
    if (std::ranges::find(report->unknown, left_out) == report->unknown.end())
      report->unknown.push_back(std::move(left_out));
  }
}

/// "…; train.py:7, train.py:8 and 2 more lines work on all of it".
void tell_computed(const PracticeEvidence& evidence, const std::vector<uint32_t>& stacks,
                   Advice* advice) {
  constexpr size_t kMostLines = 2;
  std::vector<std::string> lines;
  for (const uint32_t stack : stacks) {
    std::string line = evidence.line_of(stack);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  if (lines.empty()) return;
  std::string text = lines[0];
  for (size_t i = 1; i < std::min(lines.size(), kMostLines); ++i)
    text += (i + 1 == lines.size() ? " and " : ", ") + lines[i];
  if (const size_t more = lines.size() - std::min(lines.size(), kMostLines); more != 0)
    text += " and " + std::to_string(more) + (more == 1 ? " more line" : " more lines");
  advice->title += "; " + text + (lines.size() == 1 ? " works" : " work") + " on all of it";
}

}  // namespace

const char* saving_basis_name(SavingBasis basis) {
  static constexpr const char* kNames[] = {"at stake", "simulated", "measured", "time"};
  return kNames[static_cast<size_t>(basis)];
}

void order_advice(std::vector<Advice>* advice) {
  std::ranges::stable_sort(*advice, std::less(), [](const Advice& one) {
    return std::tuple(!one.makes_fit, one.is_choice(), ~one.bytes);
  });
}

bool is_told_by_no_recording(std::string_view kind, std::string_view why) {
  return std::ranges::find(kUntold, std::pair(kind, why)) != std::end(kUntold);
}

bool is_of_practices(const DeviceAnalysis& device, const Tables& tables) {
  if (!device.categories.is_known || device.device >= tables.devices.size()) return false;
  const Device& memory = tables.devices[device.device];
  if (is_tensorflow(memory) || is_jax(memory) || memory.layer == Layer::kDriver) return false;
  return memory.layer != Layer::kHost && !is_shared_memory(tables, device.device);
}

const DeviceAnalysis* scarcest_device(const Analysis& analysis, const Tables& tables,
                                      bool (*counts)(const DeviceAnalysis&, const Tables&)) {
  const DeviceAnalysis* best = nullptr;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!counts(device, tables)) continue;
    const auto rank = [&](const DeviceAnalysis& one) {
      return std::pair(!is_host_memory(tables.devices[one.device]), one.figures.peak_bytes);
    };
    if (!best || rank(device) > rank(*best)) best = &device;
  }
  return best;
}

void PracticeCandidate::add_stack(uint32_t stack, const Tables& tables) {
  change.group_of[stack] = 0;
  if (advice.stack == 0) advice.stack = leak_line(tables, stack);
}

void PracticeCandidate::tell_line(uint32_t stack, uint64_t bytes, const Tables& tables) {
  const uint32_t node = leak_line(tables, stack);
  ToldLine& line = told_lines[tables.stacks.node(node).frame];
  line.bytes += bytes;
  line.node = line.node == 0 ? node : std::min(line.node, node);
  const auto bytes_of = [](const auto& one) { return one.second.bytes; };
  advice.stack = std::ranges::max_element(told_lines, {}, bytes_of)->second.node;
}

void PracticeCandidate::tell(std::string kind, std::string title, std::string fix,
                             std::vector<std::pair<std::string, uint64_t>> figures) {
  advice.kind = std::move(kind), advice.title = std::move(title), advice.fix = std::move(fix);
  advice.evidence = std::move(figures);
}

void add_frames_of(const Finding& finding, const Tables& tables, std::set<uint32_t>* frames) {
  frames->insert(tables.stacks.node(finding.stack).frame);
  for (const FindingLine& line : finding.lines)
    frames->insert(tables.stacks.node(line.stack).frame);
}

void add_own_frames(const Tables& tables, uint32_t stack, std::set<uint32_t>* frames) {
  for (uint32_t node = own_node(tables, stack); node != 0;
       node = own_node(tables, tables.stacks.node(node).parent))
    frames->insert(tables.stacks.node(node).frame);
}

uint32_t own_node_apart(const Tables& tables, uint32_t stack, const std::set<uint32_t>& frames) {
  uint32_t node = own_node(tables, stack);
  while (node != 0 && frames.contains(tables.stacks.node(node).frame))
    node = own_node(tables, tables.stacks.node(node).parent);
  return node;
}

std::set<uint32_t> computing_lines(const PracticeEvidence& evidence) {
  std::set<uint32_t> out;
  for (const auto& [stack, made] : evidence.graph.allocated) {
    const Attribution work = evidence.work_of(stack);
    const uint32_t line = own_node(evidence.tables, stack);
    if (line != 0 && (work.is_computed || is_in_call(work.phase)))
      out.insert(evidence.tables.stacks.node(line).frame);
  }
  return out;
}

bool is_made_by_computation(const Tables& tables, uint32_t stack,
                            const std::set<uint32_t>& computing_lines) {
  const uint32_t line = own_node(tables, stack);
  return line != 0 && line != python_node(tables, stack) &&
         computing_lines.contains(tables.stacks.node(line).frame);
}

std::string PracticeEvidence::line_of(uint32_t stack) const {
  return short_line(tables, leak_line(tables, stack));
}

const StackSizes* PracticeEvidence::made_by(uint32_t stack) const {
  const auto made = graph.allocated.find(stack);
  return made == graph.allocated.end() ? nullptr : &made->second;
}

Result<AdviceReport> advise_on_recording(const Analysis& analysis, const Tables& tables,
                                         const SourceOpener& open, const LineText& line_text) {
  AdviceReport report = advise_tensorflow(analysis, tables);
  if (report.applies) return report;
  const DeviceAnalysis* main = scarcest_device(analysis, tables, is_of_practices);
  const bool has_shared = std::ranges::any_of(analysis.devices, [&](const DeviceAnalysis& one) {
    return is_shared_memory(tables, one.device);
  });
  if (!main && !has_shared) {
    const bool is_empty = std::ranges::none_of(analysis.devices, [](const DeviceAnalysis& one) {
      return one.figures.peak_bytes != 0;
    });
    report.unknown.emplace_back(
        "all", is_empty ? "nothing was allocated" : "the types of the memory are unknown");
    return report;
  }
  report.applies = true;
  Result<std::unique_ptr<EventSource>> source = open();
  if (!source) return std::unexpected(source.error());
  const Result<GraphEvidence> graph = gather_graph_lives(**source, analysis.ends);
  if (!graph) return std::unexpected(graph.error());
  Candidates candidates;
  const PracticeEvidence evidence{analysis, tables, *graph, line_text, main};
  find_gradient_practices(evidence, &candidates);
  find_activation_practices(evidence, &candidates);
  find_data_practices(evidence, &candidates);
  find_operation_practices(evidence, &candidates);
  find_call_practices(evidence, &candidates);
  if (main) leave_graphs_to_leaks(*main, &candidates);
  std::vector<TraceChange> changes;
  for (const PracticeCandidate& one : candidates) {
    if (one.change.has_blocks()) changes.push_back(one.change);
  }
  Result<std::vector<ChangedPeak>> peaks;
  if (!changes.empty()) {
    source = open();
    if (!source) return std::unexpected(source.error());
    peaks = replay_changes(**source, changes);
    if (!peaks) return std::unexpected(peaks.error());
  }
  auto next_peak = peaks->begin();
  for (PracticeCandidate& one : candidates) {
    Advice& advice = one.advice;
    advice.device = one.change.device;
    advice.peak_bytes = peak_bytes_of(analysis, advice.device);
    if (!main || advice.device != main->device)
      advice.peak_of = device_place(tables, tables.devices[advice.device]);
    // A change that affects no block of the trace needs no replay.
    uint64_t after = advice.peak_bytes;
    if (one.change.has_blocks()) {
      tell_computed(evidence, next_peak->computed, &advice);
      after = std::min((next_peak++)->bytes, after);
    }
    advice.bytes = advice.peak_bytes - after;
    advice.basis = SavingBasis::kSimulated;
    // Without steps it is unknown when it could have been freed.
    if (advice.bytes < least_saving(advice.peak_bytes) && one.held_bytes > 0) {
      advice.bytes = std::min(one.held_bytes, advice.peak_bytes);
      advice.basis = SavingBasis::kAtStake;
    }
  }
  take_suggestions(main, &candidates, &report);
  add_allocator_practices(analysis, &report);
  add_unknown(analysis, tables, main, &report);
  order_advice(&report.advice);
  return report;
}

Result<AdviceReport> advise_in_passing(const Analysis& analysis, const Tables& tables,
                                       const SourceOpener& open, const LineText& line_text) {
  if (analysis.events <= kMostEventsInPassing)
    return advise_on_recording(analysis, tables, open, line_text);
  AdviceReport report = advise_tensorflow(analysis, tables);
  if (report.applies) return report;
  report.not_looked_because = "more than " + std::to_string(kMostEventsInPassing) +
                              " events: run advise, or analyze --advice, to look for it";
  report.unknown = {{"all", report.not_looked_because}};
  return report;
}

}  // namespace gpumemprof
