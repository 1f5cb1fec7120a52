// Whether a process still writes to a file.
#pragma once

#include "format/format.h"

namespace gpumemprof {

enum class WriterState {
  kAlive,      ///< the process runs on this machine
  kGone,       ///< it ran on this machine
  kElsewhere,  ///< another machine's: only its own `run` can know
};

WriterState writer_state(const format::FileHeader& header, const format::FileState& state);

/// Whether the process of that number and start (0: any) still runs; it is gone only if /proc says
/// so.
bool is_running(uint32_t pid, uint64_t start_ticks);
/// When it started, according to this /proc; 0 if there is none.
uint64_t start_ticks_of(uint32_t pid);

}  // namespace gpumemprof
