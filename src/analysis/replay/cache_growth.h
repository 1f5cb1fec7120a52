// Two ways in which a caching allocator comes to hold more than its program needs, seen while its
// trace is replayed: it grows because requests of ever new sizes fit none of its free blocks, and
// it keeps what an earlier, larger phase of the program needed.
//
//   reserved  ──────┐ forced: as much was free      reserved ──────────────────────────
//             ┌─────┘ as was asked for                          ╲  idle: no request of
//   ──────────┘                                     active  ─────╲ the rest needed it ──
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/simulator.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// The trace's second half alone: before it every program asks for its sizes for the first time.
struct VariableShapes {
  /// New segments for sizes that their site had not requested before, although as much was free on
  /// the same stream.
  uint64_t forced_bytes = 0;
  uint64_t forced_events = 0;
  uint32_t stack = 0;           ///< the site with most of it
  uint64_t distinct_sizes = 0;  ///< that this site asked for
};

struct IdleCache {
  uint64_t bytes = 0;            ///< whole free segments that nothing needed from `first_event` on
  uint64_t first_event = 0;      ///< index in AllocatorTrace::events
  uint64_t alloc_events = 0;     ///< from there on
  uint64_t allocated_bytes = 0;  ///< sum of what these asked for
};

/// Fed after every event of a replay. O(1) an event; memory O(growths).
class CacheGrowth {
 public:
  /// `trace` must outlive it.
  explicit CacheGrowth(const AllocatorTrace& trace) : trace_(&trace) {}

  void begin(const AllocatorStatistics& now) { note(now); }
  void see(uint64_t event, const Simulator& simulator) {
    const AllocatorStatistics& now = simulator.statistics();
    if (now.reserved.current > reserved_) [[unlikely]]
      grew(event, now.reserved.current - reserved_, simulator);
    if (now.releasable.current != releasable_) [[unlikely]]
      idle(event, now.releasable.current);
    note(now);
  }

  /// Absent where less than a 20th of the peak, or 32 MiB, was forced, or sizes are not what forced
  /// it.
  std::optional<VariableShapes> variable_shapes(uint64_t peak_reserved_bytes) const;
  /// Absent where less than a quarter of the peak, or 32 MiB, was idle, or only for what may be
  /// part of a step: the program must have allocated three times the peak meanwhile, in a fifth of
  /// the trace.
  std::optional<IdleCache> idle_cache(uint64_t peak_reserved_bytes) const;

 private:
  void grew(uint64_t event, uint64_t bytes, const Simulator& simulator);
  void idle(uint64_t event, uint64_t releasable);
  void note(const AllocatorStatistics& now) {
    reserved_ = now.reserved.current;
    free_ = now.reserved.current - now.active.current;
    releasable_ = now.releasable.current;
  }

  const AllocatorTrace* trace_;
  uint64_t reserved_ = 0, free_ = 0, releasable_ = 0;  // after the event before
  std::vector<std::pair<uint64_t, uint64_t>> forced_;  // event, bytes
  /// Lows of what was releasable: each from its event on, until the next, which is higher.
  std::vector<std::pair<uint64_t, uint64_t>> lows_;  // event, bytes
};

}  // namespace gpumemprof
