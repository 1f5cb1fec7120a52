// Phases: named parts of the program's run. Open phases are in one table per process, because
// another thread may end them; each thread has a short list of those that it began, innermost last.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/stream.h"

namespace gpumemprof::probe {

inline constexpr size_t kMostPhaseName = 1000;  // bytes; longer names are cut

/// Begins one on the calling thread and marks it in the recording. Returns its number, 0 if nothing
/// is recorded. A name without room (250 open at once, 14 on one thread) is in the mark but not in
/// the stacks, which then have no phase.
uint64_t begin_phase(const char* name);

/// Ends it; does nothing for a number that is not an open phase of this process.
void end_phase(uint64_t phase);

/// The innermost open phase of the calling thread; 0 if there is none. A few loads.
uint64_t phase_hash();

/// Copies its name into `out`; returns the length, 0 if it has ended meanwhile.
uint32_t phase_name(char out[kMostPhaseName]);

/// Marks the end of a step. Steps of a process are numbered from 0.
void end_step();

}  // namespace gpumemprof::probe
