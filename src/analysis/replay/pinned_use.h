// What PyTorch's allocator of pinned host memory took and what of it was in use, by a snapshot's
// host_segments and host_traces. It hands out whole blocks, each as large as the driver gave it, to
// requests that round to the same size.
#pragma once

#include <cstdint>

#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

struct PinnedUse {
  uint64_t taken_bytes = 0;      ///< at the end: all blocks, free ones too
  uint64_t peak_used_bytes = 0;  ///< blocks in use, at their highest; as large as they are
  uint64_t requested_at_peak_bytes = 0;  ///< of those; of a block whose size is not known all of it
  uint64_t blocks_at_peak = 0;
  uint64_t blocks = 0;                ///< at the end
  uint64_t distinct_sizes = 0;        ///< that were asked for
  uint64_t returned_bytes = 0;        ///< that went back to the driver in the trace
  uint64_t late_bytes = 0;            ///< of new blocks, in the second half of the trace
  uint32_t rounded_stack = 0;         ///< with the most rounding at the peak
  uint32_t late_stack = 0;            ///< with the most of late_bytes
};
PinnedUse pinned_use(const AllocatorTrace& trace, const TraceStart& start);

}  // namespace gpumemprof
