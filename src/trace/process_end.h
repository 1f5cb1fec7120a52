// Whether how a process ended says anything.
#pragma once

#include <algorithm>

#include "trace/tables.h"

namespace gpumemprof {

/// By exit() or _exit(), or its parent did: what a parent that ends well does with its workers, as
/// a pool that terminates them, is the program's own way.
inline bool ended_in_order(const Tables& tables, const Process& process) {
  if (process.exited_cleanly) return true;
  return std::ranges::any_of(tables.processes, [&](const Process& other) {
    return other.pid == process.parent_pid && other.host == process.host &&
           other.first_time_ns <= process.first_time_ns && other.exited_cleanly;
  });
}

}  // namespace gpumemprof
