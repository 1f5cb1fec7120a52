// How the program ended, beside the events of its recording: which of them was a refusal that a
// dump tells of, which process stopped without an end.
#pragma once

#include "analysis/analysis.h"
#include "analysis/replay/snapshot_oom.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// The limits that the processes of `snapshot` had set themselves, as their last dumps tell.
void take_reserve_limits(const ProgramEnds& ends, AllocatorSnapshot* snapshot);

/// What the events tell of the ends is added to them, and they to the analysis. A run that died is
/// not scored. A refusal that ended a program and has no replay is a finding: others have one.
void add_program_ends(ProgramEnds ends, const Tables& tables, Analysis* analysis);

/// Of the request, by the replay of its device; null where it was not replayed.
const OomExplanation* explanation_of(const RefusedRequest& refused, const Analysis& analysis);

}  // namespace gpumemprof
