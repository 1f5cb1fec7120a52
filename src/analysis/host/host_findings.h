// What is wrong with the host's memory of a run, as findings: who killed it, who copied, what was
// left behind, and what only looks like a leak.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/finding.h"
#include "analysis/host/host_memories.h"
#include "analysis/pass/program_end.h"

namespace gpumemprof {

/// Finding::device of those: they are about no device of Tables.
inline constexpr uint16_t kOfTheHost = UINT16_MAX;

/// Of a process's tensors in host memory: they use again what malloc keeps.
struct TensorSwing {
  uint64_t whole_bytes = UINT64_MAX;  ///< from the least to the most
  uint64_t above_bytes = UINT64_MAX;  ///< from what is live at one moment to the most
};
/// From `since_ns` on, and above what is live at `at_ns`. UINT64_MAX where it is not known.
using SwingSince = std::function<TensorSwing(int64_t pid, uint64_t since_ns, uint64_t at_ns)>;
/// Both must outlive it.
SwingSince swing_of_tensors(const Analysis& analysis, const Tables& tables);

/// `swing` may be empty.
std::vector<Finding> host_findings(const HostMemories& memories, const ProgramEnds& ends,
                                   const SwingSince& swing = {});

// Copies of tensors in host memory that saving a checkpoint makes.

/// Whether a frame is a step of saving: torch.save, or a save of torch.distributed.checkpoint and
/// its staging.
bool is_saving(std::string_view file, std::string_view function);

/// One for each device of the host at whose peak such copies were live and more than a quarter of
/// it. The program's own copies before it calls these have its own lines.
std::vector<Finding> checkpoint_staging(const Analysis& analysis, const Tables& tables);

/// Host memory that grows without any recorded allocator: graphs that are traced again and again,
/// Python's own objects, arrays of libraries that nobody records.
/// By the anonymous memory of all of the run's processes at each sample, less what the recorded
/// allocators had of the host at that time. Nothing where blocks of malloc are recorded (--host):
/// they tell more.
std::optional<Finding> unrecorded_growth(const HostRun& run, const Analysis& analysis,
                                         const Tables& tables);

// How much of what forked processes share with their parent was copied as it was written to.

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

// How much of the host's memory was left when a recorded process was last seen.

struct RecordedSamples;  // recording/samples_file.h

/// Of every process that the samples have, at its last sample: of its cgroup or of what it may map
/// (ulimit -v), where that has a limit and less is left in it, else of the machine.
std::vector<HostRoom> host_rooms(const std::vector<RecordedSamples>& samples);

}  // namespace gpumemprof
