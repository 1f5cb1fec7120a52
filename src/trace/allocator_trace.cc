#include "trace/allocator_trace.h"

#include <algorithm>

namespace gpumemprof {

void AllocatorEvents::append(const AllocatorEvent& event) {
  const size_t index = size_++;
  if (index % kChunkEvents == 0) {
    chunks_.push_back({event.time_us, false});
    if (index % kPieceEvents == 0) {
      pieces_.emplace_back().reserve(index == 0 ? kChunkEvents : kPieceEvents);
    }
  }
  Chunk& chunk = chunks_.back();
  const auto action = static_cast<uint64_t>(event.action);
  ++counts_[action & 15];
  chunk.has_others |= event.action > Action::kFreeCompleted;
  // Unsigned: times come from files, and their difference may not fit a signed number.
  const uint64_t after =
      static_cast<uint64_t>(event.time_us) - static_cast<uint64_t>(chunk.base_time_us);
  const uint64_t too_large = (event.address | event.size_bytes) >> 48 |
                             static_cast<uint64_t>(event.pool >> 12) | after >> 32;
  if (too_large != 0) [[unlikely]] {
    wide_.push_back({index, event});
    pieces_.back().push_back({});
    return;
  }
  pieces_.back().push_back({.place = event.address << 16 | uint64_t{event.pool} << 4 | action,
                            .size = event.size_bytes << 16 | event.stream,
                            .stack = event.stack,
                            .time = static_cast<uint32_t>(after)});
}

const AllocatorEvent& AllocatorEvents::wide_event(size_t index) const {
  return std::ranges::lower_bound(wide_, index, {}, &Wide::index)->event;
}

}  // namespace gpumemprof
