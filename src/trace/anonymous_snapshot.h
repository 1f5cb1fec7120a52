// A snapshot with its names replaced, so that all that reads one need not know about it.
#pragma once

#include <memory>

#include "trace/allocator_trace.h"
#include "trace/anonymizer.h"

namespace gpumemprof {

/// As AnonymousSource: sizes, times, addresses and lines are kept, and so is what PyTorch calls its
/// own annotations by.
void anonymize(AllocatorSnapshot* snapshot, std::shared_ptr<Anonymizer> names);

}  // namespace gpumemprof
