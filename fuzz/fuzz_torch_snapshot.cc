// The reader of PyTorch's snapshots, as pickle and as JSON, and the stream that is made of one.
#include <stdint.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "readers/memory_file.h"
#include "readers/torch_snapshot/read.h"
#include "trace/snapshot_source.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  auto snapshot = read_torch_snapshot(file, {.limits = {.memory_bytes = 64 << 20}});
  if (!snapshot) {
    // An error is one line about a place in the file.
    if (snapshot.error().message.find('\n') != std::string::npos) abort();
    if (snapshot.error().offset.value_or(0) > size) abort();
    return 0;
  }
  uint64_t events = 0;
  for (const AllocatorTrace& trace : snapshot->traces) {
    events += trace.events.size();
    for (const AllocatorSegment& segment : trace.segments) {
      if (segment.stream >= trace.streams.size() || segment.pool >= trace.pools.size()) abort();
    }
  }
  SnapshotSource source(std::make_shared<AllocatorSnapshot>(std::move(*snapshot)));
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) state = *before;
  EventBatch batch;
  while (*source.next(&batch)) state.apply(batch);
  if (state.event_count() != events) abort();
  return 0;
}
