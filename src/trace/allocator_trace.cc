#include "trace/allocator_trace.h"

#include <algorithm>

namespace gpumemprof {

void AllocatorEvents::append(const AllocatorEvent& event) {
  const size_t index = size_++;
  if (index % kChunkEvents == 0) {
    chunks_.push_back({event.time_us, {}});
    chunks_.back().events.reserve(kChunkEvents);
  }
  Chunk& chunk = chunks_.back();
  // Unsigned: times come from files, and their difference may not fit a signed number.
  const uint64_t after =
      static_cast<uint64_t>(event.time_us) - static_cast<uint64_t>(chunk.base_time_us);
  const bool fits = event.address >> 48 == 0 && event.size_bytes >> 48 == 0 &&
                    event.pool >> 12 == 0 && after >> 32 == 0;
  if (!fits) {
    wide_.push_back({index, event});
    chunk.events.push_back({});
    return;
  }
  chunk.events.push_back({.address = event.address,
                          .action = static_cast<uint64_t>(event.action),
                          .pool = event.pool,
                          .size = event.size_bytes,
                          .stream = event.stream,
                          .stack = event.stack,
                          .time = static_cast<uint32_t>(after)});
}

const AllocatorEvent& AllocatorEvents::wide_event(size_t index) const {
  return std::ranges::lower_bound(wide_, index, {}, &Wide::index)->event;
}

}  // namespace gpumemprof
