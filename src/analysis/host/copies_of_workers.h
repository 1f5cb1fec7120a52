// How much of what forked processes share with their parent was copied as it was written to.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/host/host_memories.h"

namespace gpumemprof {

struct WorkerCopies {
  size_t parent = 0;  ///< index of the process that forked them
  uint64_t workers = 0;
  uint64_t workers_that_copied = 0;  ///< or whose parent did: that share less than at first
  uint64_t copied_bytes = 0;
  uint64_t shared_at_first_bytes = 0;    ///< anonymous pages of the workers that were not theirs alone
  uint64_t proportional_rise_bytes = 0;  ///< of the sum of their anonymous PSS, with the parent's
  uint64_t own_rise_bytes = 0;           ///< of their own anonymous memory: no copies
};

/// Of the parent with most copies; nothing where no process was forked from another of the run.
///
/// A copy leaves the RSS of a process as it was, since the page that it replaces was resident, too,
/// but the sum of the PSS rises by a page. Memory that a process asks for raises both. So copies are
/// the rise of the sum of the anonymous PSS, less the rise of each process's anonymous memory; at
/// most what the workers' shared pages have become fewer. Workers of which one at least lives count
/// together, each from its own first walk to its last. What a worker copied before its first walk is
/// not seen; what is freed and asked for again between two walks may count as copied.
std::optional<WorkerCopies> copies_of_workers(const std::vector<HostProcess>& processes);

}  // namespace gpumemprof
