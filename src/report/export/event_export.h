// What holds every event, or all that the allocator held, for other people's scripts and viewers.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"
#include "trace/allocator_trace.h"
#include "trace/event_source.h"

namespace gpumemprof {

enum class ExportFormat { kJsonLines, kCsv };

/// Takes the text that is ready; an error ends the export.
using TextSink = std::function<Status(std::string_view)>;
/// A writer gathers as much before it calls its sink.
inline constexpr size_t kFlushBytes = 256 << 10;

/// Reads `source` to its end and writes every event, in time order. What is unknown is left out
/// (JSON lines) or empty (CSV). A free carries the size of the block that it ends, where that is
/// known. Memory O(live blocks + frames). Errors are those of the source and of the sink.
Status export_events(EventSource& source, ExportFormat format, const TextSink& sink,
                     const std::function<void(double)>& on_progress = {});

/// For https://ui.perfetto.dev.
/// Tracks of every process: for each device a counter of its live bytes, one of what the allocator
/// reserved where the framework said so, an instant for every refused allocation with its stack,
/// one for the peak; and as heap profiles what was live at each device's peak and at the end, with
/// stacks. The clock is that of the source: a recording's monotonic one, with the wall clock beside
/// it where known; the wall clock of a snapshot; where there are no times, an event a nanosecond.
///
/// Streams: memory O(live blocks + stacks). Errors are those of the source and of the sink.
Status export_perfetto(EventSource& source, const TextSink& sink,
                       const std::function<void(double)>& on_progress = {});

/// Writes a pickle of protocol 4 with the layout of torch.cuda.memory._dump_snapshot(): segments,
/// device_traces, allocator_settings, external_annotations. Keys that were not known when it was
/// recorded are left out; what the model does not keep (compile_context, user_metadata, …) is not
/// written. Memory O(frames + stacks). Errors are those of the sink.
Status export_snapshot(const AllocatorSnapshot& snapshot, const TextSink& sink,
                       const std::function<void(double)>& on_progress = {});

}  // namespace gpumemprof
