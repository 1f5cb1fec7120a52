// Graphs without a backward pass, or kept after it; blocks that could be
// computed again.
#include <algorithm>
#include <cctype>
#include <map>
#include <ranges>
#include <string>
#include <string_view>

#include "analysis/advice/practices.h"
#include "analysis/leaks/leaks.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// Without the graph, only the input and the output of one operation exist at a time.
constexpr uint64_t kOperands = 2;

uint64_t bytes_at_peak(const DeviceAnalysis& device, const TraceChange& change) {
  uint64_t bytes = 0;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (change.group_of.contains(holder.stack)) bytes += holder.bytes;
  }
  return bytes;
}

/// `ends`: which of a stack's saved blocks count; those stacks are taken of which all are so.
void find_graphs(const PracticeEvidence& evidence, const DeviceAnalysis& device, bool is_needed,
                 std::vector<PracticeCandidate>* out) {
  PracticeCandidate candidate(device);
  uint64_t largest = 0, most = 0, kept = 0;
  for (const auto& [stack, lives] : evidence.graph.by_stack) {
    const uint64_t count = is_needed ? lives.after_backward : lives.without_backward;
    // Data that many graphs read is kept for them, not by one.
    const uint64_t others =
        lives.in_backward + (is_needed ? lives.without_backward + lives.saved_later : 0);
    // Between two evaluations a backward pass may end, so these count as well there.
    if (count == 0 || others > 0) continue;
    candidate.change.group_of[stack] = 0;
    largest = std::max(largest, lives.largest_bytes);
    const uint64_t bytes = is_needed ? lives.after_bytes : lives.without_bytes;
    kept += bytes;
    if (bytes > most) most = bytes, candidate.advice.stack = leak_line(evidence.tables, stack);
  }
  if (candidate.change.group_of.empty()) return;
  const uint64_t at_peak = bytes_at_peak(device, candidate.change);
  const std::string line = practice_line(evidence.tables, candidate.advice.stack);
  if (is_needed) {
    candidate.advice.kind = "graph_kept";
    candidate.advice.title = "what autograd saved at " + line +
                             " stays live after its backward pass: " + format_bytes(at_peak) +
                             " at the peak";
    candidate.advice.fix =
        "Del outputs and losses that no later step reads. Where retain_graph=True is for a second "
        "backward pass, .detach() the input that only one of them needs";
    candidate.change.rule = TraceChange::Rule::kGoneAfterStep;
  } else {
    candidate.advice.kind = "graph_not_needed";
    candidate.advice.title = "activations made at " + line + " are stored for a backward() that " +
                             "never runs: " + format_bytes(at_peak) + " at the peak";
    candidate.advice.fix = "Run what is not trained under torch.no_grad() or inference_mode()";
    candidate.change.rule = TraceChange::Rule::kGone;
    candidate.change.stays_bytes = kOperands * largest;
  }
  candidate.advice.evidence = {{"activation_bytes", at_peak}, {"kept_bytes_in_all", kept}};
  out->push_back(std::move(candidate));
}

/// "encoder.layers.*" and 3 of "encoder.layers.3.mlp"; empty where no part of the path is a number.
struct BlockPath {
  std::string name;
  uint32_t number = 0;
  bool is_below = false;  ///< it is a part of a block, not the block itself
};
BlockPath block_of(std::string_view module) {
  for (size_t begin = 0; begin < module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = module.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && part.size() < 7 &&
        std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
    if (is_number)
      return {.name = std::string(module.substr(0, begin)) + '*',
              .number = static_cast<uint32_t>(std::stoul(std::string(part))),
              .is_below = end < module.size()};
    begin = end + 1;
  }
  return {};
}

struct BlockFamily {
  std::map<uint32_t, uint64_t> bytes;                 // by number of the block
  std::map<uint32_t, uint64_t> kept;                  // by number: how many activations
  std::vector<std::pair<uint32_t, uint32_t>> stacks;  // stack, block
  uint64_t largest_holder = 0, total = 0;
  uint32_t most_stack = 0;
  bool has_parts = false;  // else these are layers alone, which keep their input and no more
};

/// Modules of one list, equal in what they keep, that together are a large part of the peak.
void find_blocks(const PracticeEvidence& evidence, const DeviceAnalysis& device,
                 std::vector<PracticeCandidate>* out) {
  if (evidence.graph.backward_passes == 0) return;  // nothing is computed again for
  constexpr uint64_t kLeastShare = 3;   // one part in so many of the peak
  constexpr uint64_t kStatistics = 64;  // smaller parts of a block are means, masks and the like
  std::map<std::string, BlockFamily> families;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (holder.category != Category::kActivation || holder.count == 0) continue;
    const Attribution work = attribution_of(evidence.tables, holder.stack);
    if (work.is_recomputed) return;  // it is in use
    const auto [family, number, is_below] = block_of(work.module);
    if (family.empty()) continue;
    BlockFamily& one = families[family];
    one.has_parts |= is_below || (one.kept[number] += holder.count) > 1;
    one.bytes[number] += holder.bytes;
    one.total += holder.bytes;
    one.stacks.emplace_back(holder.stack, number);
    if (holder.bytes > one.largest_holder)
      one.largest_holder = holder.bytes, one.most_stack = holder.stack;
  }
  for (const auto& [name, family] : families) {
    if (!family.has_parts || family.bytes.size() < 3) continue;
    if (family.total < device.figures.peak_bytes / kLeastShare) continue;
    const auto [least, most] = std::ranges::minmax(family.bytes | std::views::values);
    if (2 * least < most) continue;  // not equal
    PracticeCandidate candidate(device);
    uint64_t smallest = UINT64_MAX;
    for (const auto& [stack, number] : family.stacks) {
      candidate.change.group_of[stack] = number;
      const auto made = evidence.graph.allocated.find(stack);
      if (made == evidence.graph.allocated.end()) continue;
      for (const auto& [size_bytes, count] : made->second.by_size) {
        if (size_bytes * kStatistics >= most) smallest = std::min(smallest, size_bytes);
      }
    }
    // A block's input stays, as the smallest of what it computes from it.
    candidate.change.stays_bytes = smallest == UINT64_MAX ? 0 : smallest;
    candidate.advice.kind = "checkpointing";
    candidate.advice.stack = leak_line(evidence.tables, family.most_stack);
    candidate.advice.modules = name;
    candidate.advice.title = "the " + std::to_string(family.bytes.size()) + " layers " + name +
                             " keep " + format_bytes(family.total) + " of activations, " +
                             (least == most ? "" : "up to ") + format_bytes(most) + " each";
    candidate.advice.fix =
        "Checkpoint them: CheckpointedModel(model), torch.utils.checkpoint, or gpumemprof.optimize "
        "for as few as needed";
    candidate.advice.evidence = {{"activation_bytes", family.total},
                                 {"blocks", family.bytes.size()}};
    candidate.change.rule = TraceChange::Rule::kOneGroupAtATime;
    out->push_back(std::move(candidate));
  }
}

}  // namespace

void find_activation_practices(const PracticeEvidence& evidence,
                               std::vector<PracticeCandidate>* candidates) {
  const DeviceAnalysis* device = practice_device(evidence.analysis, evidence.tables);
  if (!device) return;
  find_graphs(evidence, *device, false, candidates);
  find_graphs(evidence, *device, true, candidates);
  find_blocks(evidence, *device, candidates);
}

}  // namespace gpumemprof
