#include "analysis/held_attempt.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <ranges>
#include <vector>

namespace gpumemprof {
namespace {

/// The outermost first.
std::vector<uint32_t> nodes_of(uint32_t stack, const Tables& tables) {
  std::vector<uint32_t> nodes;
  for (; stack != 0; stack = tables.stacks.node(stack).parent) nodes.push_back(stack);
  std::ranges::reverse(nodes);
  return nodes;
}

/// Where two stacks part, if that is within one function, which went from one line to another.
struct Parting {
  uint32_t before = 0, after = 0;  ///< nodes; 0: elsewhere
};
Parting parting_of(uint32_t earlier, uint32_t later, const Tables& tables) {
  const std::vector<uint32_t> before = nodes_of(earlier, tables), after = nodes_of(later, tables);
  const auto [a, b] = std::ranges::mismatch(before, after);
  if (a == before.end() || b == after.end()) return {};
  const Frame &one = tables.stacks.frame_of(*a), &other = tables.stacks.frame_of(*b);
  const bool is_same = one.file == other.file && one.function == other.function;
  return is_same && one.line != other.line ? Parting{*a, *b} : Parting{};
}

bool is_below(uint32_t stack, uint32_t node, const Tables& tables) {
  while (stack != 0 && stack != node) stack = tables.stacks.node(stack).parent;
  return stack != 0;
}

/// Of what `earlier` had below the node; 0 where any of it worth a hundredth was freed by `later`.
/// What loops keep is no attempt's: of each of its stacks the block of the last round is freed.
uint64_t bytes_kept(const Refusal& earlier, const Refusal& later, uint32_t node,
                    const Tables& tables) {
  constexpr uint64_t kFewShare = 100;
  absl::flat_hash_map<uint32_t, uint64_t> still;
  for (const Holder& holder : later.holders) still[holder.stack] = holder.bytes;
  uint64_t all = 0, kept = 0, of_others = 0;
  for (const Holder& holder : earlier.holders) {
    if (!is_below(holder.stack, node, tables)) continue;
    all += holder.bytes;
    if (still[holder.stack] >= holder.bytes)
      kept += holder.bytes;
    else
      of_others += holder.bytes;
  }
  return of_others > all / kFewShare ? 0 : kept;
}

}  // namespace

std::optional<HeldAttempt> held_attempt(const DeviceAnalysis& device, const Tables& tables) {
  if (device.refusals.empty()) return std::nullopt;
  const Refusal& last = device.refusals.back();
  for (const Refusal& first : device.refusals) {
    // Only the first few have holders.
    if (first.holders.empty() || first.number == last.number || first.thread != last.thread)
      continue;
    const Parting parting = parting_of(first.stack, last.stack, tables);
    if (parting.before == 0) continue;
    const uint64_t kept = bytes_kept(first, last, parting.before, tables);
    if (kept == 0 || kept > last.live_bytes) continue;
    if (last.live_bytes - kept + last.size_bytes <= first.live_bytes)
      return HeldAttempt{kept, first.stack, parting.after};
  }
  return std::nullopt;
}

uint64_t last_work_event(const DeviceAnalysis& device, const ProgramEnds& ends) {
  constexpr uint64_t kWorkShare = 20;
  const bool has_worked =
      device.refusals.empty() || !ends.uncaught.empty() ||
      device.refusals.back().allocated_after_bytes >=
          device.refusals.back().live_bytes / kWorkShare;
  return has_worked ? device.last_alloc_event : 0;
}

}  // namespace gpumemprof
