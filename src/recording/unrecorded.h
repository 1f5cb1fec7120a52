// Processes without a file count what they lose in the arena; this reads the counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "recording/arena.h"
#include "recording/writer_state.h"

namespace gpumemprof {

/// Processes of one command that could create no file for one reason.
struct UnrecordedProcess {
  int pid = 0;  ///< of one of them; 0: not known
  std::string command;
  std::string reason;  ///< a sentence without a full stop
  uint64_t processes = 1, lost_events = 0, lost_bytes = 0;
};

/// Why a process has no file, from what it reported and what is visible from here.
std::string why_it_has_no_file(const format::Unrecorded& entry);

/// "3 processes lost 24 events, 286 MiB of allocations"; bytes if they are known, empty if nothing
/// was counted.
std::string lost_text(uint64_t processes, uint64_t events, uint64_t bytes);

/// Not thread-safe. The counts themselves are in the arena.
class UnrecordedProcesses {
 public:
  UnrecordedProcesses(std::shared_ptr<Arena> arena, std::string folder)
      : arena_(std::move(arena)), folder_(std::move(folder)) {}
  /// Reads all entries. Returns how many of their processes live.
  size_t round();
  /// The counts so far, equal ones added up. Each is returned once; later counts in later calls.
  std::vector<UnrecordedProcess> take();
  /// Processes that were seen counting, alive or not.
  const std::set<int>& pids() const { return pids_; }

 private:
  void end(format::Unrecorded* entry);
  std::shared_ptr<Arena> arena_;
  std::string folder_;
  std::map<size_t, ProcessHere> here_;  // by entry
  std::set<int> pids_;
};

}  // namespace gpumemprof
