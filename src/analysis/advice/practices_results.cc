// Results of a model's calls that are kept until an evaluation or a prediction loop is over.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "analysis/advice/practices.h"
#include "analysis/leaks/leaks.h"
#include "base/size.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

/// Calls whose results of one stack are all live: fewer may be a cache's parts, or a pair to compare.
constexpr uint64_t kLeastCalls = 8;
/// One result is being made, and the one before it is still in its variable.
constexpr uint64_t kResultsAtATime = 2;
/// An allocator rounds each part up to as much (PyTorch's kMinBlockSize, c10/cuda/CUDACachingAllocator.h).
constexpr uint64_t kRounding = 512;

/// Made by a model's call without gradients and, as far as its life shows, not for the next call.
bool may_be_result(const CategoryHolder& holder, const Tables& tables) {
  if (holder.why == WhyUnknown::kKeptResult) return true;
  return holder.category == Category::kTemporary &&
         attribution_of(tables, holder.stack).phase == WorkPhase::kEvaluation;
}

/// By line that calls a model: how often it did so, at most. A call allocates at each of its stacks
/// once or more often.
std::map<uint32_t, uint64_t> calls_by_line(const std::vector<const CategoryHolder*>& holders,
                                           const PracticeEvidence& evidence) {
  std::map<uint32_t, uint64_t> out;
  if (holders.empty()) return out;
  for (const CategoryHolder* holder : holders)
    out[call_line(evidence.tables, holder->stack)] = UINT64_MAX;
  for (const auto& [stack, made] : evidence.graph.allocated) {
    if (!is_in_call(attribution_of(evidence.tables, stack).phase)) continue;
    const auto line = out.find(call_line(evidence.tables, stack));
    if (line != out.end()) line->second = std::min(line->second, made.count);
  }
  return out;
}

/// Of one line that calls a model.
struct KeptResults {
  std::vector<const CategoryHolder*> holders;
  std::map<std::string_view, uint64_t> bytes_of_module;
  uint64_t bytes = 0, blocks = 0, calls = 0;
};

/// A cache has parts in many layers; results come from the one that runs last.
bool is_of_one_module(const KeptResults& kept) {
  return std::ranges::any_of(kept.bytes_of_module,
                             [&](const auto& one) { return 4 * one.second >= 3 * kept.bytes; });
}

/// Frames of the lines that a leak tells of: it has the fix.
std::set<uint32_t> frames_of_leaks(const PracticeEvidence& evidence, uint16_t device) {
  const auto frame_of = [&](uint32_t node) { return evidence.tables.stacks.node(node).frame; };
  std::set<uint32_t> out;
  for (const Finding& finding : evidence.analysis.findings) {
    if (finding.kind != FindingKind::kLeak || finding.device != device) continue;
    out.insert(frame_of(finding.stack));
    for (const FindingLine& line : finding.lines) out.insert(frame_of(line.stack));
  }
  return out;
}

/// What torch.cat() or torch.stack() made of the blocks of a holder: a block at the peak that is as
/// large as all of them.
uint64_t joined_bytes(const CategoryHolder& parts, const PracticeEvidence& evidence,
                      const DeviceAnalysis& device) {
  for (const CategoryHolder& holder : device.categories.at_peak) {
    const auto made = evidence.graph.allocated.find(holder.stack);
    if (holder.stack == parts.stack || made == evidence.graph.allocated.end()) continue;
    const auto from = made->second.by_size.lower_bound(
        parts.bytes - std::min(parts.bytes, parts.count * kRounding));
    if (from == made->second.by_size.end() || from->first > holder.bytes) continue;
    if (from->first <= parts.bytes + kRounding) return from->first;
  }
  return 0;
}

void add_candidate(const KeptResults& kept, uint32_t line, const PracticeEvidence& evidence,
                   const DeviceAnalysis& device, std::vector<PracticeCandidate>* out) {
  PracticeCandidate candidate(device);
  uint64_t joined = 0;
  candidate.change.rule = TraceChange::Rule::kGone;
  candidate.advice.stack = line;
  for (const CategoryHolder* holder : kept.holders) {
    candidate.add_stack(holder->stack, evidence.tables);
    candidate.change.stays_bytes += kResultsAtATime * holder->bytes / kept.calls;
    joined += joined_bytes(*holder, evidence, device);
  }
  candidate.advice.kind = "results_kept";
  candidate.advice.title = "results of " + std::to_string(kept.calls) + " calls at " +
                           short_line(evidence.tables, line) +
                           " are live together: " + format_bytes(kept.bytes) + " at the peak";
  candidate.advice.evidence = {{"kept_bytes", kept.bytes}, {"blocks", kept.blocks}};
  candidate.advice.fix = "Keep what is read later instead of the whole result: argmax, a sum, a "
                         "running metric";
  if (!is_host_memory(evidence.tables.devices[device.device]))
    candidate.advice.fix += "; or move each result to the host with .cpu()";
  if (joined != 0) {
    candidate.advice.title += ", and a tensor joined of them is another " + format_bytes(joined);
    candidate.advice.evidence.emplace_back("joined_bytes", joined);
    candidate.advice.fix +=
        ". Where all of it is needed, allocate the whole tensor first and write each result into "
        "it: torch.cat needs the parts and the whole at once";
  }
  out->push_back(std::move(candidate));
}

}  // namespace

void find_result_practices(const PracticeEvidence& evidence,
                           std::vector<PracticeCandidate>* candidates) {
  const DeviceAnalysis* device = practice_device(evidence.analysis, evidence.tables);
  if (!device) return;
  const Tables& tables = evidence.tables;
  const std::set<uint32_t> leaking = frames_of_leaks(evidence, device->device);
  const auto leaks = [&](uint32_t node) { return leaking.contains(tables.stacks.node(node).frame); };
  std::vector<const CategoryHolder*> holders;
  for (const CategoryHolder& holder : device->categories.at_peak) {
    if (holder.count < kLeastCalls || !may_be_result(holder, tables)) continue;
    if (leaks(call_line(tables, holder.stack)) || leaks(leak_line(tables, holder.stack))) continue;
    holders.push_back(&holder);
  }
  const std::map<uint32_t, uint64_t> calls_of = calls_by_line(holders, evidence);
  std::map<uint32_t, KeptResults> by_line;
  for (const CategoryHolder* holder : holders) {
    const uint32_t line = call_line(tables, holder->stack);
    const auto made = evidence.graph.allocated.find(holder->stack);
    if (made == evidence.graph.allocated.end() || made->second.count == 0) continue;
    // A loop in the model makes several in a call.
    const uint64_t calls = holder->count * calls_of.at(line) / made->second.count;
    if (calls < kLeastCalls) continue;
    KeptResults& kept = by_line[line];
    kept.holders.push_back(holder);
    kept.bytes_of_module[attribution_of(tables, holder->stack).module] += holder->bytes;
    kept.bytes += holder->bytes, kept.blocks += holder->count;
    kept.calls = std::max(kept.calls, calls);
  }
  for (const auto& [line, kept] : by_line) {
    if (is_of_one_module(kept)) add_candidate(kept, line, evidence, *device, candidates);
  }
}

}  // namespace gpumemprof
