// Phases: parts of the program's run that it names itself. What is open is kept in one table of the
// process, since the end may be told on another thread than the beginning; each thread has a short
// list of those that it began, the innermost last.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/stream.h"

namespace gpumemprof::probe {

inline constexpr size_t kMostPhaseName = 1000;  // bytes; longer names are cut

/// Begins one on the calling thread and marks it in the recording. Its number, 0 where nothing is
/// recorded. A name that finds no room (250 open at once, 14 on one thread) is in the mark and not
/// in the stacks, which then have no phase at all.
uint64_t begin_phase(const char* name);

/// Ends it; nothing for a number that is not that of an open phase of this process.
void end_phase(uint64_t phase);

/// Of the innermost phase that is open on the calling thread; 0 where there is none. A few loads.
uint64_t phase_hash();

/// Its name into `out`; the length. 0 where it has ended meanwhile.
uint32_t phase_name(char out[kMostPhaseName]);

/// Marks the end of a step. Steps of a process are numbered from 0.
void end_step();

}  // namespace gpumemprof::probe
