// One event a line, for other people's scripts: JSON lines or CSV.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"
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

}  // namespace gpumemprof
