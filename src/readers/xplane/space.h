// What is gathered from the planes of a profile, on its way to becoming an EventSource.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "readers/protobuf.h"
#include "trace/event_source.h"

namespace gpumemprof::xplane {

/// One memory event. The total is what the allocator had handed out right after it.
struct Row {
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t requested_bytes = 0;  ///< 0: not told
  uint64_t total_bytes = 0;
  int64_t step = kNoStep;
  uint32_t stack = 0;
  uint32_t thread = 0;
  uint16_t device = 0;
  bool is_alloc = false;
  bool has_total = false;
};

struct Space {
  explicit Space(uint64_t memory_bytes) : budget(memory_bytes) {}

  MemoryBudget budget;
  Tables tables;
  std::vector<Row> rows;
  bool has_steps = false;  ///< of one row at least
  /// The highest that each device's allocator had been since the program began; 0: not told.
  std::vector<uint64_t> peak_since_start_bytes;
  absl::flat_hash_map<std::string_view, uint16_t> devices_of_plane;  ///< by name; of one plane
  uint64_t incomplete_events = 0;         ///< without an address or a size that can be
  std::optional<uint64_t> started_at_ns;  ///< wall clock of the profile's time 0
  Loss loss;                              ///< what the profiler itself says
};

/// Adds the memory events of one plane of the host named `host`. `plane` must outlive the space.
/// Errors: kBadInput.
Status read_plane(std::string_view plane, uint64_t offset, std::string_view host, Space* space);

/// `path` and `file_bytes` are those of the file. The rows are put into the order of their times.
std::unique_ptr<EventSource> make_source(Space space, std::string path, uint64_t file_bytes);

}  // namespace gpumemprof::xplane
