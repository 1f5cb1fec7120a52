// What a caching allocator did on one device, and what it held in the end: the model that readers
// of PyTorch's snapshots fill and that replay, what-if and the analyses read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/event.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// One entry of the allocator's own history. `size_bytes` is what the program asked for in kAlloc
/// and both frees, the bytes of the segment or of the mapped range in kSegment*, the rounded size
/// that was refused in kOom, and the active bytes in kSnapshot.
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
/// Values that do not fit the packed form are kept aside, so every 64-bit value survives.
/// Append-only; not thread-safe while it grows, free to read from any thread afterwards.
class AllocatorEvents {
 public:
  void append(const AllocatorEvent& event);
  AllocatorEvent operator[](size_t index) const {  // inline: replay reads millions a second
    const Chunk& chunk = chunks_[index / kChunkEvents];
    const Packed& packed = chunk.events[index % kChunkEvents];
    if (packed.action == 0) [[unlikely]]
      return wide_event(index);
    return {
        .address = packed.address,
        .size_bytes = packed.size,
        .time_us = static_cast<int64_t>(static_cast<uint64_t>(chunk.base_time_us) + packed.time),
        .stack = packed.stack,
        .stream = static_cast<uint16_t>(packed.stream),
        .pool = static_cast<uint16_t>(packed.pool),
        .action = static_cast<Action>(packed.action)};
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  // 4096 events a chunk: growth never copies, and never holds more than one chunk too much.
  static constexpr size_t kChunkEvents = 4096;
  struct Packed {
    uint64_t address : 48;
    uint64_t action : 4;
    uint64_t pool : 12;
    uint64_t size : 48;
    uint64_t stream : 16;
    uint32_t stack;
    uint32_t time;  // microseconds after the chunk's first event
  };
  static_assert(sizeof(Packed) == 24 && kActionCount <= 16);
  struct Chunk {
    int64_t base_time_us = 0;
    std::vector<Packed> events;
  };
  struct Wide {
    uint64_t index;
    AllocatorEvent event;
  };

  const AllocatorEvent& wide_event(size_t index) const;

  size_t size_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<Wide> wide_;  // ordered by index; Packed::action is 0 for these
};

enum class BlockState : uint8_t { kAllocated, kPendingFree, kFree };

/// A piece of a segment. `requested_bytes` of a free block is that of its last user.
struct AllocatorBlock {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t requested_bytes = 0;
  uint32_t stack = 0;
  BlockState state = BlockState::kFree;
};

/// One cudaMalloc, or one contiguous mapped range of an expandable segment, as it was in the end.
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

/// What a program said of itself: "Optimizer.step#AdamW.step" began or ended.
struct Annotation {
  uint32_t name = 0;  ///< StringTable id
  bool is_begin = false;
  int16_t device = 0;
  int64_t time_us = 0;
};

/// One device's half of a snapshot. Events may be a suffix of history; segments are always all.
struct AllocatorTrace {
  int32_t device = 0;        ///< CUDA index; -1: pinned host memory
  bool has_times = false;    ///< time_us means something
  bool has_pools = false;    ///< events name their pool (torch >= 2.12)
  bool has_history = false;  ///< events were recorded at all
  bool overflowed = false;   ///< the writer said that its ring had dropped events
  AllocatorEvents events;
  std::vector<AllocatorSegment> segments;  ///< by address
  std::vector<int64_t> streams;  ///< cudaStream_t as a number; [0] is 0, the default stream
  std::vector<std::pair<int64_t, int64_t>> pools;  ///< [0] is (0, 0), the default pool
};

/// allocator_settings as the file has them. Absent keys keep these defaults.
struct RecordedSettings {
  bool known = false;                 ///< torch >= 2.5 writes them
  std::string conf;                   ///< PYTORCH_CUDA_ALLOC_CONF, word for word
  int64_t max_split_size_bytes = -1;  ///< -1: unlimited
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  /// Bucket in MiB (1, 2, 4, … 32768) and its divisions, as listed.
  std::vector<std::pair<uint64_t, uint64_t>> roundup_power2_divisions;
};

/// A whole snapshot, materialised: replay and what-if need random access.
struct AllocatorSnapshot {
  SourceInfo info;  ///< kind "pytorch_snapshot"; writer_version_hint such as "torch 2.10 or 2.11"
  Tables tables;    ///< strings, frames, stacks; devices are those of `traces`, in the same order
  std::vector<AllocatorTrace> traces;  ///< devices with segments or events, by device index
  std::vector<Annotation> annotations;
  RecordedSettings settings;
  Loss loss;  ///< what the file holds and this model does not: unknown actions, wrong sums
};

}  // namespace gpumemprof
