// The events as a trace of https://ui.perfetto.dev.
#pragma once

#include <functional>

#include "report/export/event_export.h"

namespace gpumemprof {

/// Tracks of every process: for each device a counter of its live bytes, one of what the allocator
/// reserved where the framework said so, an instant for every refused allocation with its stack,
/// one for the peak; and as heap profiles what was live at each device's peak and at the end, with
/// stacks. The clock is that of the source: a recording's monotonic one, with the wall clock beside
/// it where known; the wall clock of a snapshot; where there are no times, an event a nanosecond.
///
/// Streams: memory O(live blocks + stacks). Errors are those of the source and of the sink.
Status export_perfetto(EventSource& source, const TextSink& sink,
                       const std::function<void(double)>& on_progress = {});

}  // namespace gpumemprof
