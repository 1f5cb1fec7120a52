// Whether the way in which a process ended is worth reporting.
#pragma once

#include <algorithm>

#include "trace/tables.h"

namespace gpumemprof {

/// True if it or its parent ended by exit() or _exit(): a parent that ends normally may terminate
/// its workers, as a pool does.
inline bool ended_in_order(const Tables& tables, const Process& process) {
  if (process.exited_cleanly) return true;
  return std::ranges::any_of(tables.processes, [&](const Process& other) {
    return other.pid == process.parent_pid && other.host == process.host &&
           other.first_time_ns <= process.first_time_ns && other.exited_cleanly;
  });
}

}  // namespace gpumemprof
