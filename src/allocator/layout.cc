#include "allocator/layout.h"

#include <algorithm>
#include <bit>

#include "allocator/simulator_state.h"

namespace gpumemprof {
namespace {

using Piece = SimulatedBlock::State;

SegmentView view_of(const SimulatedSegment& segment, uint64_t address) {
  return {.address = address,
          .stream = segment.stream,
          .pool = segment.pool,
          .is_large = segment.is_large,
          .is_expandable = segment.is_expandable,
          .stack = segment.stack,
          .blocks = {}};
}

}  // namespace

FreeMemory free_memory(const Simulator& simulator) {
  FreeMemory out;
  for (const auto& list : simulator.state().lists) {
    FreeListSummary summary{.pool = list->pool, .stream = list->stream, .is_large = list->is_large};
    for (const FreeKey& key : list->free) {
      ++summary.blocks;
      summary.bytes += key.size_bytes;
      const int log2 = std::bit_width(key.size_bytes) - 1;
      ++out.blocks_by_log2[log2];
      out.bytes_by_log2[log2] += key.size_bytes;
    }
    if (!list->free.empty()) summary.largest_bytes = (--list->free.end())->size_bytes;
    out.largest_bytes = std::max(out.largest_bytes, summary.largest_bytes);
    out.lists.push_back(summary);
  }
  std::ranges::sort(out.lists, {}, [](const FreeListSummary& s) {
    return std::tuple(s.pool, s.stream, s.is_large);
  });
  out.cache_slack_bytes = simulator.statistics().releasable.current;
  out.fragmented_bytes = simulator.statistics().fragmented_bytes();
  return out;
}

std::vector<SegmentView> segments(const Simulator& simulator) {
  std::vector<SegmentView> out;
  for (uint32_t index = 0; index < simulator.segment_count(); ++index) {
    const SimulatedSegment& segment = simulator.segment(index);
    bool in_range = false;  // a hole of unmapped pages ends a range
    for (BlockId id = segment.first; id != kNoBlock; id = simulator.block(id).next) {
      const SimulatedBlock& block = simulator.block(id);
      if (block.state == Piece::kUnmapped) {
        in_range = false;
        continue;
      }
      if (!in_range) out.push_back(view_of(segment, block.address));
      in_range = true;
      SegmentView& view = out.back();
      view.size_bytes += block.size_bytes;
      view.blocks.push_back(id);
      if (block.state == Piece::kFree) {
        view.largest_free_bytes = std::max(view.largest_free_bytes, block.size_bytes);
      } else {
        view.active_bytes += block.size_bytes;
      }
    }
  }
  std::ranges::sort(out, {}, &SegmentView::address);
  return out;
}

size_t count_segments(const Simulator& simulator) {
  size_t count = 0;
  for (uint32_t index = 0; index < simulator.segment_count(); ++index) {
    const SimulatedSegment& segment = simulator.segment(index);
    if (!segment.is_expandable) {
      count += segment.first != kNoBlock;
      continue;
    }
    bool in_range = false;
    for (BlockId id = segment.first; id != kNoBlock; id = simulator.block(id).next) {
      const bool is_mapped = simulator.block(id).state != Piece::kUnmapped;
      count += is_mapped && !in_range;
      in_range = is_mapped;
    }
  }
  return count;
}

uint64_t rounded_bytes(const Simulator& simulator, const Simulator::Request& request) {
  return round_size(std::min(request.requested_bytes, kMostBytes), simulator.config(),
                    simulator.release());
}

uint64_t free_bytes(const Simulator& simulator, const Simulator::Request& request) {
  const Simulator::State& state = simulator.state();
  const bool is_large = rounded_bytes(simulator, request) > kSmallBlockBytes;
  const auto list = state.list_index.find(list_key(request.pool, request.stream, is_large));
  return list == state.list_index.end() ? 0 : state.lists[list->second]->free_bytes;
}

uint64_t fitting_bytes(const Simulator& simulator, const Simulator::Request& request) {
  const Simulator::State& state = simulator.state();
  const uint64_t size = rounded_bytes(simulator, request);
  const auto found =
      state.list_index.find(list_key(request.pool, request.stream, size > kSmallBlockBytes));
  if (found == state.list_index.end()) return 0;
  const FreeList& list = *state.lists[found->second];
  const auto best = state.best_fit(list, size);
  return best == list.free.end() ? 0 : best->size_bytes;
}

Obstacle obstacle(const Simulator& simulator, const Simulator::Request& request) {
  const AllocatorConfig& config = simulator.config();
  Obstacle out;
  out.rounded_bytes = rounded_bytes(simulator, request);
  out.free_bytes = free_bytes(simulator, request);
  out.releasable_bytes = simulator.statistics().releasable.current;
  const bool is_large = out.rounded_bytes > kSmallBlockBytes;
  for (SegmentView& view : segments(simulator)) {
    const bool limited = out.rounded_bytes < config.max_split_size_bytes &&
                         view.largest_free_bytes >= config.max_split_size_bytes;
    if (view.pool != request.pool || view.stream != request.stream || view.is_large != is_large) {
      const uint64_t so_far = out.elsewhere ? out.elsewhere->largest_free_bytes : 0;
      if (!limited && view.largest_free_bytes >= out.rounded_bytes &&
          view.largest_free_bytes > so_far)
        out.elsewhere = std::move(view);
      continue;
    }
    if (!limited)
      out.largest_usable_bytes = std::max(out.largest_usable_bytes, view.largest_free_bytes);
    const bool would_do = view.size_bytes >= out.rounded_bytes && view.active_bytes > 0 &&
                          view.largest_free_bytes < out.rounded_bytes;
    if (would_do) out.pinned.push_back(std::move(view));
  }
  std::ranges::stable_sort(out.pinned, {}, &SegmentView::active_bytes);
  return out;
}

}  // namespace gpumemprof
