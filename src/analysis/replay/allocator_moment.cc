#include "analysis/replay/allocator_moment.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace gpumemprof {
namespace {

using State = SimulatedBlock::State;

constexpr uint64_t kSmallPageBytes = 2 * kMiB;  // expandable segments of small blocks grow by these

bool is_live(State state) { return state == State::kAllocated || state == State::kPendingFree; }

/// The whole pages inside a free block of an expandable segment, which can be released by
/// themselves. Pages are counted from the base of the reserved range.
uint64_t whole_page_bytes(const Simulator& simulator, const SimulatedBlock& block) {
  const SimulatedSegment& range = simulator.segment(block.segment);
  const uint64_t page = range.is_large
                            ? std::max<uint64_t>(simulator.config().large_segment_bytes, 1)
                            : kSmallPageBytes;
  const uint64_t begin = (block.address - range.address + page - 1) / page * page;
  const uint64_t end = (block.address - range.address + block.size_bytes) / page * page;
  return end > begin ? end - begin : 0;
}

SegmentPicture picture_of(const Simulator& simulator, const SegmentView& view) {
  SegmentPicture picture{.address = view.address,
                         .size_bytes = view.size_bytes,
                         .active_bytes = view.active_bytes,
                         .stream = view.stream,
                         .pool = view.pool,
                         .is_large = view.is_large,
                         .is_expandable = view.is_expandable};
  picture.blocks.reserve(view.blocks.size());
  for (BlockId id : view.blocks) {
    const SimulatedBlock& block = simulator.block(id);
    picture.blocks.push_back(
        {block.size_bytes, is_live(block.state) ? block.stack : 0, block.state});
    if (is_live(block.state)) continue;
    if (view.is_expandable) {
      picture.pinned_bytes += block.size_bytes - whole_page_bytes(simulator, block);
    } else if (view.active_bytes != 0) {
      picture.pinned_bytes += block.size_bytes;
    }
  }
  return picture;
}

}  // namespace

std::vector<PinningStack> pinning_by(const std::vector<SegmentPicture>& segments,
                                     absl::FunctionRef<uint32_t(uint32_t stack)> key) {
  struct Pinner {
    PinningStack sums;
    const SegmentPicture* last = nullptr;  // in which it was seen
  };
  std::vector<Pinner> pinners;
  absl::flat_hash_map<uint32_t, uint32_t> by_key, by_stack;  // indices in pinners
  std::vector<uint32_t> here;
  for (const SegmentPicture& picture : segments) {
    if (picture.pinned_bytes == 0) continue;
    here.clear();
    for (const BlockPicture& block : picture.blocks) {
      if (!is_live(block.state)) continue;
      const auto [known, is_new] = by_stack.try_emplace(block.stack);
      if (is_new) {
        const uint32_t one = key(block.stack);
        known->second = by_key.try_emplace(one, pinners.size()).first->second;
        if (known->second == pinners.size()) pinners.push_back({.sums = {.stack = one}});
      }
      Pinner& pinner = pinners[known->second];
      if (std::exchange(pinner.last, &picture) != &picture) here.push_back(known->second);
      ++pinner.sums.blocks;
      pinner.sums.live_bytes += block.size_bytes;
    }
    for (const uint32_t one : here) {
      PinningStack& sums = pinners[one].sums;
      ++sums.segments;
      sums.pinned_bytes += picture.pinned_bytes;
      if (here.size() == 1) sums.alone_bytes += picture.pinned_bytes;
    }
  }
  std::vector<PinningStack> out;
  for (const Pinner& pinner : pinners) out.push_back(pinner.sums);
  std::ranges::sort(out, [](const PinningStack& a, const PinningStack& b) {
    return std::tie(b.alone_bytes, b.pinned_bytes, a.stack) <
           std::tie(a.alone_bytes, a.pinned_bytes, b.stack);
  });
  return out;
}

MemoryFigures figures_of(const AllocatorStatistics& statistics) {
  return {.allocated_bytes = statistics.allocated.current,
          .active_bytes = statistics.active.current,
          .requested_bytes = statistics.requested.current,
          .reserved_bytes = statistics.reserved.current,
          .releasable_bytes = statistics.releasable.current};
}

AllocatorMoment look_at(const Simulator& simulator, uint64_t event) {
  AllocatorMoment moment;
  if (event != kBeforeFirstEvent) moment.event = event;
  moment.figures = figures_of(simulator.statistics());
  moment.free = free_memory(simulator);
  absl::flat_hash_map<uint32_t, Holder> holders;
  for (const SegmentView& view : segments(simulator)) {
    const SegmentPicture& picture = moment.segments.emplace_back(picture_of(simulator, view));
    moment.pinned_bytes += picture.pinned_bytes;
    moment.pinned_segments += picture.pinned_bytes != 0;
    for (const BlockPicture& block : picture.blocks) {
      if (!is_live(block.state)) continue;
      Holder& holder = holders[block.stack];
      holder.bytes += block.size_bytes;
      ++holder.count;
    }
  }
  for (auto& [stack, holder] : holders) {
    holder.stack = stack;
    moment.holders.push_back(holder);
  }
  std::ranges::sort(moment.holders, [](const Holder& a, const Holder& b) {
    return std::tie(b.bytes, a.stack) < std::tie(a.bytes, b.stack);
  });
  moment.pinning = pinning_by(moment.segments, std::identity());
  return moment;
}

}  // namespace gpumemprof
