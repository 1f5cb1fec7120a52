// Whether a process may have ended otherwise than its program meant it to.
#pragma once

#include <algorithm>

#include "analysis/pass/program_end.h"
#include "trace/event_source.h"
#include "trace/process_end.h"

namespace gpumemprof {

/// No exit was seen, of it or of its parent, and no `run` says that its program ended well and that
/// the kernel killed nothing meanwhile. What a pool of workers terminates is in no doubt then.
inline bool is_end_in_doubt(const Tables& tables, const Process& process, const ProgramEnds& ends) {
  const bool ended_well =
      !ends.runs.empty() && std::ranges::all_of(ends.runs, [](const ProgramEnd& run) {
        return run.exit_code == 0 && run.kernel_kills.value_or(0) == 0;
      });
  return !ended_well && !ended_in_order(tables, process);
}

/// Nobody saw how the program ended, and its last events may be missing.
inline bool is_end_unknown(const Loss& loss, const Tables& tables, const ProgramEnds& ends) {
  return ends.failure.empty() && loss.is_open_ended() &&
         std::ranges::any_of(tables.processes, [&](const Process& process) {
           return is_end_in_doubt(tables, process, ends);
         });
}

}  // namespace gpumemprof
