// Finds the processes that a program starts and that load PyTorch without being recorded, so that
// the summary can name them: there is never a silent empty recording.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "run/meta.h"
#include "run/process_exits.h"
#include "run/processes.h"

namespace gpumemprof {

/// Looks at /proc from outside; the watched processes take no part. Not thread-safe.
///
/// A process is known by PID and start time, so a PID that comes back is another process. A process
/// stays known as a descendant when its parent is gone (a daemon). One that lives for less than the
/// time between two looks may be missed; where it has the probe, its own file tells of it.
class DescendantWatcher {
 public:
  /// `root`: the program. `folder`: the recording, whose file names tell who was recorded.
  DescendantWatcher(int root, std::string folder, std::string proc = "/proc");

  /// One look.
  void look();
  /// The program was reaped: its PID may come back as somebody else's. From now on a look also finds
  /// what no look saw while its parents lived: whoever has the folder's name in its environment.
  void root_ended() { root_ = 0; }
  /// What is known after the last look.
  std::vector<NotRecorded> not_recorded() const;
  /// PyTorch was seen in a process whose allocations would have arrived, and none did.
  bool allocated_nothing() const;
  /// Torch was seen in some process, recorded or not.
  bool torch_seen() const { return torch_seen_; }
  /// How recorded descendants ended, as far as it was seen; the program itself is not among them.
  std::vector<ProcessExitStatus> exits() const;
  /// A known descendant was still running at the last look.
  bool any_alive() const { return any_alive_; }
  /// One of them ran, or waited for a CPU or a disk.
  bool any_at_work() const { return any_at_work_; }
  /// Those that were running at the last look, the program first where it is among them.
  std::vector<ProcessId> running() const;
  /// A GPU's driver or run time was seen in some process, recorded or not.
  bool gpu_seen() const { return gpu_seen_; }
  /// A descendant whose mappings may not be read (sudo: another user's), if there was one.
  const std::string& unreadable_command() const { return unreadable_command_; }

 private:
  struct Known {
    uint64_t start_ticks = 0;
    uint64_t virtual_bytes = 0;  // when its mappings were read last
    uint64_t last_seen = 0;      // number of the look
    int inner_pid = 0;
    int looks_with_torch = 0;
    bool is_running = false;         // at the last look: no zombie
    uint64_t looks_for_gpu = 0;      // how often its mappings could have been read for that
    uint64_t gpu_virtual_bytes = 0;  // when they were
    Mappings mappings;
    std::string command;
    std::string obstacle;  // why_it_cannot_record() at the last look
    bool probe_gets_calls = false;
  };
  struct Finished {
    ProcessId id;
    Known known;
  };
  using ByPid = std::unordered_map<int, const ProcessStat*>;
  bool is_descendant(const ProcessStat& stat, const ByPid& by_pid) const;
  bool has_folder_in_environment(const ProcessStat& stat);
  void list_recorded();
  void retire(int pid, const Known& known);
  void look_for_gpu(const ProcessStat& stat, Known* known);
  void examine(const ProcessStat& stat, Known* known);
  bool probe_gets_calls(int pid, const Mappings& mappings);
  bool is_recorded(const ProcessId& id, const Known& known) const;
  void judge(const ProcessId& id, const Known& known, std::vector<NotRecorded>* out) const;

  int root_;
  std::string folder_;
  std::string proc_;
  std::unordered_map<int, Known> known_;  // by pid; the living ones
  std::vector<Finished> finished_;        // gone, had torch
  std::unordered_set<std::string> recorded_;  // "PID.STARTTICKS" of its files, at the last look
  std::unordered_map<std::string, bool> calls_by_name_;  // what libc10.so of this path does
  std::string unreadable_command_;
  ProcessExits exits_;
  std::unordered_map<int, uint64_t> strangers_;  // by pid, start ticks: their environment was read
  uint64_t look_number_ = 0;
  bool torch_seen_ = false;
  bool gpu_seen_ = false;
  bool any_alive_ = false;
  bool any_at_work_ = false;
};

}  // namespace gpumemprof
