// The layout of an allocator at one moment of a replay, and the stacks that pin free memory.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/layout.h"
#include "allocator/replay.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Free memory in segments pinned by the live blocks of one stack, or of what pinning_by() names.
struct PinningStack {
  uint32_t stack = 0;
  uint64_t blocks = 0;
  uint64_t live_bytes = 0;    ///< of those blocks
  uint64_t segments = 0;      ///< that it is in
  uint64_t pinned_bytes = 0;  ///< free bytes in those segments; other stacks may pin them as well
  uint64_t alone_bytes = 0;   ///< of them: in segments where no other stack has a live block
};

struct BlockPicture {
  uint64_t size_bytes = 0;
  uint32_t stack = 0;
  SimulatedBlock::State state = SimulatedBlock::State::kFree;
};

struct SegmentPicture {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t active_bytes = 0;
  uint64_t pinned_bytes = 0;  ///< free bytes that only the segment's live blocks keep from going
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_large = false;
  bool is_expandable = false;
  std::vector<BlockPicture> blocks;  ///< by address, without gaps
};

struct AllocatorMoment {
  std::optional<uint64_t> event;  ///< right after it; absent: before the first one
  MemoryFigures figures;
  FreeMemory free;
  uint64_t pinned_bytes = 0;  ///< free bytes in segments that live blocks pin
  uint64_t pinned_segments = 0;
  std::vector<PinningStack> pinning;     ///< most alone_bytes first, then most pinned_bytes
  std::vector<Holder> holders;           ///< what is live by stack, in rounded bytes, largest first
  std::vector<SegmentPicture> segments;  ///< by address
};

/// Of the stacks with one key together, which is their `stack`: segments that two of them pin count
/// once, and are pinned by it alone. Sorted as AllocatorMoment::pinning.
std::vector<PinningStack> pinning_by(const std::vector<SegmentPicture>& segments,
                                     absl::FunctionRef<uint32_t(uint32_t stack)> key);

MemoryFigures figures_of(const AllocatorStatistics& statistics);

/// O(blocks). `event` is kBeforeFirstEvent for the beginning.
AllocatorMoment look_at(const Simulator& simulator, uint64_t event);

}  // namespace gpumemprof
