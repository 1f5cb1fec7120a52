// The allocators' own histories in a recording: as a snapshot, and what they add to its analysis.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// The recording as a snapshot of its one process's allocator, with the settings that its text of
/// them stands for: what replay, what-if and the export take. Reads all of `source`. Errors: those
/// of read_allocator_history.
Result<AllocatorSnapshot> recorded_snapshot(EventSource& source);

/// analyze_source() with all that the source knows beside its events: the histories of allocators
/// (add_histories), the pool of a memory dump. Errors: those of analyze_source and add_histories.
Result<Analysis> analyze_whole(EventSource& source, const AnalysisOptions& options);

/// Analyses each device of `histories` as one of a snapshot (analyze_snapshot) and puts the result
/// in the place of what `all` has of it: requested sizes, the replay, why it ran out. Their stacks
/// must be ids of `tables`, which `all` was made with, and their times on its clock
/// (HistoryOptions::stands_alone false). Errors: those of analyze_snapshot.
Status add_histories(const std::vector<AllocatorSnapshot>& histories, const Tables& tables,
                     const SnapshotAnalysisOptions& options, Analysis* all);

}  // namespace gpumemprof
