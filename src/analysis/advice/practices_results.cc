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

/// Of one line that calls a model.
struct KeptResults {
  std::vector<const CategoryHolder*> holders;
  std::map<std::string_view, uint64_t> bytes_of_module;
  uint64_t bytes = 0, blocks = 0;
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
    candidate.change.stays_bytes += kResultsAtATime * holder->bytes / holder->count;
    joined += joined_bytes(*holder, evidence, device);
  }
  candidate.advice.kind = "results_kept";
  candidate.advice.title = "results of " + std::to_string(kept.holders.front()->count) +
                           " calls at " + short_line(evidence.tables, line) +
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
  std::map<uint32_t, KeptResults> by_line;
  for (const CategoryHolder& holder : device->categories.at_peak) {
    if (holder.why != WhyUnknown::kKeptResult || holder.count < kLeastCalls) continue;
    const uint32_t line = call_line(tables, holder.stack);
    if (leaks(line) || leaks(leak_line(tables, holder.stack))) continue;
    KeptResults& kept = by_line[line];
    kept.holders.push_back(&holder);
    kept.bytes_of_module[attribution_of(tables, holder.stack).module] += holder.bytes;
    kept.bytes += holder.bytes, kept.blocks += holder.count;
  }
  for (const auto& [line, kept] : by_line) {
    if (is_of_one_module(kept)) add_candidate(kept, line, evidence, *device, candidates);
  }
}

}  // namespace gpumemprof
