// The host's memory during a run: of each process and of the cgroup, when it was highest, by the
// samples that `run` took.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/host/host_identity.h"

namespace gpumemprof {

struct DriverMemories;   // analysis/driver/driver_memories.h
struct ProcessHolders;   // recording/holders_file.h
struct RecordedSamples;  // recording/samples_file.h
struct Tables;           // trace/tables.h

/// One process of the run.
struct HostProcess {
  int64_t pid = 0, parent = 0;  ///< parent 0: not told
  std::string program;          ///< "python train.py"; empty where not told
  HostMoment highest;           ///< of all samples the one with the most resident
  /// Of those with a walk through the page tables the one with the most resident.
  std::optional<HostMoment> walked;
  /// The most of all readings: of the samples, of the kernel's own maximum at them, of what the
  /// process said; reached by then.
  uint64_t most_resident_bytes = 0, most_resident_ns = 0;
  uint64_t last_time_ns = 0, last_resident_bytes = 0;  ///< at the last sample that has it
  uint64_t most_copied_file_bytes = 0;  ///< of files that hold no code, at most
  std::string most_copied_file;
  /// Of samples with a walk, in order of time.
  struct Walk {
    uint64_t time_ns, anonymous, proportional_anonymous, private_dirty;
  };
  std::vector<Walk> walks;
  /// Resident from then on, where it changed.
  struct Level {
    uint64_t time_ns, resident;
  };
  std::vector<Level> levels;
  /// As the process said of itself, in the order of its looks: resident, and what malloc has.
  std::vector<HostMoment> asked;
};

/// "python train.py (pid 41)". As the file has it: print what printable() makes of it.
std::string name_of(const HostProcess& process);

/// All processes of the run together, at the sample where it was the most.
struct HostSum {
  uint64_t time_ns = 0;
  uint64_t processes = 0;
  uint64_t bytes = 0;
  uint64_t samples = 0;  ///< of which it is the highest
};

/// All processes of the run at one sample; nothing where it is unknown of one of them.
struct HostLevel {
  uint64_t time_ns = 0;
  std::optional<uint64_t> anonymous, file, shared, pinned;
  std::optional<uint64_t> cgroup;  ///< what is charged to it
};

/// What one `run` sampled of its machine.
struct HostRun {
  std::string host;
  uint32_t run_pid = 0;
  std::vector<HostProcess> processes;      ///< the one with the most resident first
  std::optional<HostSum> highest_resident; ///< shared pages count in every process
  /// By PSS: shared pages count once among these. Of samples with a walk.
  std::optional<HostSum> highest_proportional;
  /// The same of those that compile for torch.compile.
  std::optional<HostSum> compile_workers, compile_workers_proportional;
  std::vector<HostLevel> levels;  ///< in order of time
  std::optional<CgroupMoment> cgroup_highest;
  std::optional<CgroupMoment> cgroup_last;  ///< at the last sample with a process of the run
  /// Since the run began; nothing where nobody counts.
  std::optional<uint64_t> limit_hits, kills;
  uint64_t last_time_ns = 0;
  uint64_t last_sample_with_processes_ns = 0;
  bool has_end = false;  ///< `run` took its last sample
  bool is_over = false;  ///< nobody has written samples for some time
};

struct HostMemories {
  std::vector<HostRun> runs;
  std::vector<std::string> left_out;  ///< one sentence each
};

/// Null where no samples tell of the host. `driver` and `holders` may be null.
std::shared_ptr<const HostMemories> host_memories(const std::vector<RecordedSamples>& samples,
                                                  const Tables& tables,
                                                  const DriverMemories* driver,
                                                  const std::vector<ProcessHolders>* holders,
                                                  bool hides_names);

}  // namespace gpumemprof
