// Processes that could make no file count what they lose in the arena; here it is told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "recording/arena.h"

namespace gpumemprof {

/// Processes of one command that could make no file for one reason.
struct UnrecordedProcess {
  int pid = 0;  ///< of one of them; 0: not known
  std::string command;
  std::string reason;  ///< a sentence without a full stop
  uint64_t processes = 1, lost_events = 0, lost_bytes = 0;
};

/// Why a process has no file, as far as what it told and what was seen from here says.
std::string why_it_has_no_file(const format::Unrecorded& entry);

/// "3 processes lost 24 events, 286 MiB of allocations"; bytes where they are known, empty where nobody counted.
std::string lost_text(uint64_t processes, uint64_t events, uint64_t bytes);

/// Not thread-safe. Everything that counts is in the arena.
class UnrecordedProcesses {
 public:
  UnrecordedProcesses(std::shared_ptr<Arena> arena, std::string folder)
      : arena_(std::move(arena)), folder_(std::move(folder)) {}
  /// Looks at all entries. How many of their processes live.
  size_t round();
  /// What was counted so far, alike ones together; it is told once, what comes after it later.
  std::vector<UnrecordedProcess> take();
  /// Processes that were seen to count, whether they live or not.
  const std::set<int>& pids() const { return pids_; }

 private:
  void end(format::Unrecorded* entry);
  std::shared_ptr<Arena> arena_;
  std::string folder_;
  std::map<size_t, uint64_t> start_ticks_;  // by entry, as /proc says here
  std::set<int> pids_;
};

}  // namespace gpumemprof
