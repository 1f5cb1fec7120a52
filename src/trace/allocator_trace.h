// A caching allocator's events on one device and its final state: the model that readers of PyTorch
// snapshots fill and that replay, what-if and the analyses read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/large_pages.h"
#include "trace/event.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// One entry of the allocator's own history. `size_bytes` is the requested size in kAlloc and both
/// frees, the size of the segment or mapped range in kSegment*, the refused rounded size in kOom,
/// and the active bytes in kSnapshot.
struct AllocatorEvent {
  uint64_t address = 0;  ///< kOom: what the device had free (device_free), in bytes
  uint64_t size_bytes = 0;
  int64_t time_us = 0;  ///< wall clock; 0 in traces without times (AllocatorTrace::has_times)
  uint32_t stack = 0;   ///< StackTable id; 0: no stack was recorded
  uint16_t stream = 0;  ///< index in AllocatorTrace::streams
  uint16_t pool = 0;    ///< index in AllocatorTrace::pools; 0 where the file does not say
  Action action = Action::kAlloc;
};

/// The events of one device, oldest first, about 24 bytes each: a snapshot of 1 GB has six million.
/// Values that do not fit the packed form are stored separately, so every 64-bit value is
/// preserved. Append-only; not thread-safe while it grows, then readable from any thread.
class AllocatorEvents {
 public:
  void append(const AllocatorEvent& event);
  AllocatorEvent operator[](size_t index) const {  // inline: replay reads millions a second
    const Chunk& chunk = chunks_[index / kChunkEvents];
    const Packed& packed = pieces_[index / kPieceEvents][index % kPieceEvents];
    const auto action = static_cast<Action>(packed.place & 15);
    if (action == Action{}) [[unlikely]]
      return wide_event(index);
    return {
        .address = packed.place >> 16,
        .size_bytes = packed.size >> 16,
        .time_us = static_cast<int64_t>(static_cast<uint64_t>(chunk.base_time_us) + packed.time),
        .stack = packed.stack,
        .stream = static_cast<uint16_t>(packed.size),
        .pool = static_cast<uint16_t>(packed.place >> 4 & 0xfff),
        .action = action};
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The number of events of an action.
  uint64_t count(Action action) const { return counts_[static_cast<size_t>(action) & 15]; }
  // Allocations and frees come by the thousand between other events. These pass over them:
  /// an index from `index` on without any other event before it; size() where none is left.
  size_t next_other(size_t index) const {
    while (index < size_ && !chunks_[index / kChunkEvents].has_others)
      index = (index / kChunkEvents + 1) * kChunkEvents;
    return index < size_ ? index : size_;
  }
  /// an index up to `index` without any other event from it to there; 0 where none is left.
  size_t behind_last_other(size_t index) const {
    while (index > 0 && !chunks_[(index - 1) / kChunkEvents].has_others)
      index = (index - 1) / kChunkEvents * kChunkEvents;
    return index;
  }

 private:
  static constexpr size_t kChunkEvents = 4096;  // with times near each other
  struct Packed {
    uint64_t place;  // 48 bits of the address, 12 of the pool, 4 of the action (0: a wide event)
    uint64_t size;   // 48 bits of the size, 16 of the stream
    uint32_t stack;
    uint32_t time;  // microseconds after the chunk's first event
  };
  static_assert(sizeof(Packed) == 24 && kActionCount <= 16);
  struct Chunk {
    int64_t base_time_us = 0;
    bool has_others = false;  // than allocations and frees
  };
  // Three large pages: after the first piece, growth never copies.
  static constexpr size_t kPieceEvents = size_t{1} << 18;
  using Piece = std::vector<Packed, LargePages<Packed>>;
  static_assert(kPieceEvents * sizeof(Packed) == 3 * LargePages<Packed>::kPageBytes);
  struct Wide {
    uint64_t index;
    AllocatorEvent event;
  };

  const AllocatorEvent& wide_event(size_t index) const;

  size_t size_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Piece> pieces_;
  std::vector<Wide> wide_;  // ordered by index
  std::array<uint64_t, 16> counts_{};
};

/// What else the program said of an event, where it said anything.
struct EventContext {
  uint64_t event = 0;            ///< index in AllocatorTrace::events
  uint32_t compile_context = 0;  ///< StringTable id; 0: "N/A"
  uint32_t user_metadata = 0;    ///< StringTable id; 0: none
};

enum class BlockState : uint8_t { kAllocated, kPendingFree, kFree };

/// A part of a segment. `requested_bytes` of a free block is that of its last user.
struct AllocatorBlock {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t requested_bytes = 0;
  uint32_t stack = 0;
  BlockState state = BlockState::kFree;
};

/// A cudaMalloc, or a contiguous mapped range of an expandable segment, in its final state.
struct AllocatorSegment {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  uint64_t active_bytes = 0;
  uint64_t requested_bytes = 0;
  uint32_t stack = 0;
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_large = false;
  bool is_expandable = false;
  std::vector<AllocatorBlock> blocks;  ///< by address, without gaps
};

/// An annotation of the program, such as "Optimizer.step#AdamW.step", began or ended.
struct Annotation {
  uint32_t name = 0;  ///< StringTable id
  bool is_begin = false;
  int16_t device = 0;
  int64_t time_us = 0;
};

/// What a process may reserve of a device in all, by its own limit
/// (torch.cuda.set_per_process_memory_fraction). Told in rounded figures it is from `least_bytes`
/// to `most_bytes`, both included; else all three are the same.
struct ReserveLimit {
  uint64_t bytes = 0, least_bytes = 0, most_bytes = 0;
  bool is_exact() const { return least_bytes == most_bytes; }
  bool operator==(const ReserveLimit&) const = default;
};

/// One device's half of a snapshot. Events may be a suffix of the history; segments are always
/// complete.
struct AllocatorTrace {
  int32_t device = 0;                ///< CUDA index; -1: pinned host memory
  bool has_times = false;            ///< time_us means something
  bool has_pools = false;            ///< events name their pool (torch >= 2.12)
  bool has_history = false;          ///< events were recorded at all
  bool has_compile_context = false;  ///< events say in which compiled piece they were (>= 2.7)
  bool has_user_metadata = false;    ///< events carry the program's own words (>= 2.10)
  bool overflowed = false;           ///< the writer said that its ring had dropped events
  uint64_t device_bytes = 0;         ///< how large the device is, as its driver says; 0: not known
  std::optional<ReserveLimit> reserve_limit;  ///< where the process, or its error, told it
  AllocatorEvents events;
  std::vector<EventContext> contexts;      ///< of few events, in their order
  std::vector<AllocatorSegment> segments;  ///< by address
  std::vector<int64_t> streams;  ///< cudaStream_t as a number; [0] is 0, the default stream
  std::vector<std::pair<int64_t, int64_t>> pools;  ///< [0] is (0, 0), the default pool
};

/// allocator_settings as in the file. Absent keys keep these defaults.
struct RecordedSettings {
  bool known = false;                 ///< torch >= 2.5 writes them
  std::string conf;                   ///< PYTORCH_CUDA_ALLOC_CONF, word for word
  int64_t max_split_size_bytes = -1;  ///< -1: unlimited
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  /// Bucket in MiB (1, 2, 4, … 32768) and its divisions, as listed.
  std::vector<std::pair<uint64_t, uint64_t>> roundup_power2_divisions;
};

/// A whole snapshot in memory, because replay and what-if need random access.
struct AllocatorSnapshot {
  /// kind "pytorch_snapshot" or "recording"; writer_version_hint such as "torch 2.10 or 2.11"
  SourceInfo info;
  Tables tables;  ///< strings, frames, stacks; devices are those of `traces`, in the same order
  std::vector<AllocatorTrace> traces;  ///< devices with segments or events, by device index
  std::vector<Annotation> annotations;
  RecordedSettings settings;
  Loss loss;  ///< what the file holds and this model does not: unknown actions, wrong sums
  /// Known parts of the file that affect no figure and are not kept: how many, and of what.
  std::vector<LossReason> not_kept;
};

}  // namespace gpumemprof
