// Dumps of out-of-memory errors beside the events of the same refusals.
#pragma once

#include "analysis/analysis.h"
#include "analysis/replay/snapshot_oom.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// The limits that the processes of `snapshot` had set themselves, as their last dumps tell.
void take_reserve_limits(const ProgramEnds& ends, AllocatorSnapshot* snapshot);

/// Sets RefusedRequest::told: the last refusal of that process and device whose size the message
/// tells, else of another process: then `stack` is that one's.
void find_told_refusals(const Analysis& analysis, const Tables& tables, ProgramEnds* ends);

/// Of the request, by the replay of its device; null where it was not replayed.
const OomExplanation* explanation_of(const RefusedRequest& refused, const Analysis& analysis);

}  // namespace gpumemprof
