// Puts the parts of a snapshot together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "readers/pickle/window.h"
#include "readers/torch_snapshot/builder.h"
#include "readers/torch_snapshot/parts.h"
#include "readers/torch_snapshot/value.h"
#include "trace/allocator_trace.h"

namespace gpumemprof::torch_snapshot {

/// `top` is the value that the file is: a snapshot, or a list of segments. The builder is used up.
/// `end` is the offset behind it, for the error that it is something else.
Result<AllocatorSnapshot> assemble(Builder& builder, const Value& top, uint64_t end);

// A snapshot as JSON: the same dictionaries and lists.

/// Reads the window's file to its end; memory does not grow with it. Errors: kBadInput with the
/// offset at which the text stops being JSON, or something is nested or too long beyond reason.
Result<Value> read_json(Window& window, Builder& builder,
                        const std::function<void(double)>& on_progress);

// Which releases of PyTorch write a file like this one.

/// "torch 2.10 or 2.11"; empty where the file has too little to tell. `top` is the mask of the keys
/// of the whole (0 for a bare list of segments); a key's first release is in
/// docs/torch-snapshots.md.
std::string version_hint(const SeenKeys& seen, uint64_t top, bool has_annotate_action);

}  // namespace gpumemprof::torch_snapshot
