// The simulator, as the reference is run: `simulate calls` takes a list of calls on its standard
// input (reference.cc says how they are written) and prints the same lines as the real allocator;
// `simulate replay FILE.json` and `simulate whatif FILE.json SETTINGS CAPACITY RELEASE` read a snapshot.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "allocator/json_snapshot_for_tests.h"
#include "allocator/replay.h"

using namespace gpumemprof;

static int replay(const char* path, const char* release_text) {
  const JsonSnapshotForTests file(path);
  for (const AllocatorTrace& trace : file.snapshot.traces) {
    const ReplayResult r =
        release_text == nullptr
            ? replay_unknown_release(trace, file.snapshot.settings, "")
            : replay_recorded(trace, file.snapshot.settings, *find_release(release_text));
    printf("device %d release %s: %lu of %lu addresses, %lu of %lu driver calls, %lu of %lu end blocks, "
           "impossible %lu, peak reserved %lu at %ld allocated %lu at %ld, end reserved %lu allocated %lu%s\n",
           trace.device, release_name(r.release).c_str(), r.matched, r.alloc_addresses,
           r.segment_events_matched, r.segment_events, r.end_blocks_matched, r.end_blocks,
           r.impossible_events, r.peak_reserved.bytes, (long)r.peak_reserved.event.value_or(-1),
           r.peak_allocated.bytes, (long)r.peak_allocated.event.value_or(-1), r.end.reserved_bytes,
           r.end.allocated_bytes,
           r.first_mismatch_event
               ? (", first mismatch at " + std::to_string(*r.first_mismatch_event) + ": " + r.mismatch_reason).c_str()
               : "");
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc >= 3 && strcmp(argv[1], "replay") == 0) return replay(argv[2], argc > 3 ? argv[3] : nullptr);
  return 2;
}
