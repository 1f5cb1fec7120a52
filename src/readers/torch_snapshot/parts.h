// What is gathered of a snapshot while its file is read, before it is put together.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/allocator_trace.h"

namespace gpumemprof::torch_snapshot {

inline constexpr uint32_t kNoPart = UINT32_MAX;

/// An event before its list is known.
struct EventRecord {
  AllocatorEvent event;
  int64_t stream = 0;
  uint32_t pool = 0;                                ///< index of Parts::pairs
  uint32_t compile_context = 0, user_metadata = 0;  ///< Texts ids; 0: nothing said
  uint32_t unread_action = 0;  ///< Texts id of an action that the model does not have
  bool has_place = false;      ///< the keys that it had
  bool has_size = false;
  bool has_time = false;
  bool has_pool = false;
  bool has_compile_context = false;
  bool has_user_metadata = false;
};

struct HistoryRecord {
  uint64_t requested_bytes = 0;
  uint32_t stack = 0;
};

/// A block while its keys are read.
struct BlockRecord {
  AllocatorBlock block;
  const HistoryRecord* last_use = nullptr;
  bool has_requested = false;
  bool has_stack = false;
};

/// A list of events: of one device, once it is known which.
struct TraceRecord {
  AllocatorTrace trace;
  absl::flat_hash_map<int64_t, uint16_t> streams;
  absl::flat_hash_map<uint32_t, uint16_t> pools;  ///< by index of Parts::pairs
  int64_t last_stream = 0;
  uint16_t last_stream_index = 0;
};

struct SegmentRecord {
  AllocatorSegment segment;
  int64_t device = 0;
  int64_t stream = 0;
  uint32_t pool = 0;  ///< index of Parts::pairs
};

/// The dictionary around everything; each member an index in Parts, or kNoPart.
struct SnapshotRecord {
  uint32_t segments = kNoPart;
  uint32_t traces = kNoPart;
  uint32_t annotations = kNoPart;
  uint32_t settings = kNoPart;
  uint32_t host_segments = kNoPart;
  uint32_t host_traces = kNoPart;
  uint64_t keys = 0;  ///< those that it has, as a mask of keys.h
};

/// The keys that were seen where, as masks of keys.h: they tell the release that wrote the file.
struct SeenKeys {
  uint64_t event = 0;
  uint64_t segment = 0;
  uint64_t block = 0;
  uint64_t settings = 0;
};

struct Parts {
  Tables tables;
  // Waiting for the list around them; the list takes them and the vector shrinks again.
  std::vector<EventRecord> events;
  std::vector<AllocatorBlock> blocks;
  std::vector<SegmentRecord> segments;
  std::vector<Annotation> annotations;
  // Complete.
  std::vector<std::unique_ptr<TraceRecord>> traces;
  std::vector<std::vector<uint32_t>> trace_lists;  ///< index in traces, kNoPart for an empty list
  std::vector<std::vector<AllocatorBlock>> block_lists;
  std::vector<std::vector<SegmentRecord, LargePages<SegmentRecord>>> segment_lists;
  std::vector<std::vector<Annotation>> annotation_lists;
  std::vector<HistoryRecord> histories;
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> number_maps;  ///< Texts id: number
  std::vector<RecordedSettings> settings;
  std::vector<SnapshotRecord> snapshots;
  std::vector<std::pair<int64_t, int64_t>> pairs = {{0, 0}};

  SeenKeys seen;
  bool ring_overflowed = false;
  uint64_t forward_frames = 0;  ///< events that have such lists
  uint64_t categories = 0;      ///< events that have one
  uint64_t fx_frames = 0;       ///< frames with keys of torch.fx
  uint64_t other_contexts = 0;  ///< compile contexts and user's words that are no text
  absl::flat_hash_map<uint32_t, uint64_t> unread_actions;  ///< Texts id: events
  std::vector<uint32_t> unread_keys;                       ///< Texts ids, distinct, the first few
  std::vector<std::string> unread_layouts;  ///< known keys whose values have an unknown layout
};

}  // namespace gpumemprof::torch_snapshot
