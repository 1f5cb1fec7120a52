// A snapshot from a file, replayed and asked what if: whatever its events say, the simulation ends,
// and its figures agree with one another.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "allocator/layout.h"
#include "allocator/replay.h"
#include "allocator/step_limit.h"
#include "readers/memory_file.h"
#include "readers/torch_snapshot/read.h"
#include "work_limit.h"

using namespace gpumemprof;

namespace {

void check(const Simulator& simulator) {
  uint64_t bytes = 0, active = 0;
  for (const SegmentView& view : segments(simulator)) {
    bytes += view.size_bytes;
    active += view.active_bytes;
  }
  const AllocatorStatistics& now = simulator.statistics();
  if (bytes != now.reserved.current || active != now.active.current) abort();
  if (now.releasable.current > bytes - active) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  const auto snapshot = read_torch_snapshot(file, {.limits = {.memory_bytes = 64 << 20}});
  if (!snapshot) return 0;
  for (const AllocatorTrace& trace : snapshot->traces) {
    const uint64_t last = trace.events.size() - 1;
    // One search may go on for as long as there are blocks after it has passed the limit.
    const uint64_t most_steps = step_limit(trace.events.size()) + 16 * size + 4096;
    const auto look = [&](uint64_t event, const Simulator& simulator) {
      if (simulator.steps() > most_steps) abort();
      if (event == last || event % 64 == 0) check(simulator);
      return true;
    };
    const ReplayResult replayed =
        replay_recorded(trace, snapshot->settings, newest_release(), look);
    if (replayed.matched > replayed.alloc_addresses) abort();
    AllocatorConfig config = recorded_config(snapshot->settings, newest_release());
    config.expandable_segments = !config.expandable_segments;
    config.capacity_bytes = 1ull << 30;
    const WhatIfResult asked = what_if(trace, config, newest_release(), look);
    if (asked.peak_reserved_bytes > *config.capacity_bytes) abort();
  }
  return 0;
}
