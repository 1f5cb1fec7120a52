// Puts the parts of a snapshot together.
#pragma once

#include "base/error.h"
#include "readers/torch_snapshot/builder.h"
#include "readers/torch_snapshot/value.h"
#include "trace/allocator_trace.h"

namespace gpumemprof::torch_snapshot {

/// `top` is the value that the file is: a snapshot, or a list of segments. The builder is used up.
/// `end` is the offset behind it, for the error that it is something else.
Result<AllocatorSnapshot> assemble(Builder& builder, const Value& top, uint64_t end);

}  // namespace gpumemprof::torch_snapshot
