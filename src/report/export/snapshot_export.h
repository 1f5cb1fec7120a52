// A snapshot as PyTorch writes it, for PyTorch's own tools.
#pragma once

#include <functional>

#include "base/error.h"
#include "report/export/event_export.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Writes a pickle of protocol 4 with the layout of torch.cuda.memory._dump_snapshot(): segments,
/// device_traces, allocator_settings, external_annotations. Keys that were not known when it was
/// recorded are left out; what the model does not keep (compile_context, user_metadata, …) is not
/// written. Memory O(frames + stacks). Errors are those of the sink.
Status export_snapshot(const AllocatorSnapshot& snapshot, const TextSink& sink,
                       const std::function<void(double)>& on_progress = {});

}  // namespace gpumemprof
