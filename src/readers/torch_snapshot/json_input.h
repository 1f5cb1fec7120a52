// A snapshot as JSON: the same dictionaries and lists.
#pragma once

#include <functional>

#include "base/error.h"
#include "readers/pickle/window.h"
#include "readers/torch_snapshot/builder.h"

namespace gpumemprof::torch_snapshot {

/// Reads the window's file to its end; memory does not grow with it. Errors: kBadInput with the
/// offset at which the text stops being JSON, or something is nested or too long beyond reason.
Result<Value> read_json(Window& window, Builder& builder,
                        const std::function<void(double)>& on_progress);

}  // namespace gpumemprof::torch_snapshot
