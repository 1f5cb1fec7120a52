// Blocks that their owner has let go and that wait for another stream, by record_stream().
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// "record_stream_pending": how much lower the peak of live blocks were if none had to wait. Absent
/// below 32 MiB and a 20th of that peak. What it would spare of the reserved peak is simulated.
/// Asks for a consistent replay.
std::optional<Finding> find_record_stream_pending(const AllocatorTrace& trace,
                                                  const TraceStart& start,
                                                  const RecordedSettings& settings,
                                                  const SnapshotDevice& device);

}  // namespace gpumemprof
