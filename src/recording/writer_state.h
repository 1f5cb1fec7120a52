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

/// A process as this /proc shows it.
struct ProcessHere {
  uint32_t pid = 0;  ///< 0: there is none
  uint64_t start_ticks = 0;
  bool is_running() const { return pid != 0 && gpumemprof::is_running(pid, start_ticks); }
};
/// The one that its own /proc shows as `pid`, started at `start_ticks` (0: not known): in another
/// PID namespace it has another number here, in another time namespace another start. Looks at all
/// processes where neither the number nor `pid_namespace` (its inode, 0: not known) tells.
ProcessHere process_here(uint32_t pid, uint64_t start_ticks, uint64_t pid_namespace = 0);

}  // namespace gpumemprof
