// How often the kernel killed for want of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpumemprof {

/// Counts kills in our cgroup (memory.events, or version 1's memory.oom_control), or on the machine
/// (/proc/vmstat) where no cgroup says. Not thread-safe.
class OomKills {
 public:
  explicit OomKills(std::string root = "");
  /// Since the last call, or since the object was made.
  uint64_t new_kills();
  /// Since the cgroup or the machine began; empty where nobody counts.
  std::optional<uint64_t> all() const;
  bool is_of_cgroup() const { return !cgroup_file_.empty(); }
  /// On the whole machine since the object was made: what was moved to a cgroup of its own is killed
  /// there. 0 where nobody counts.
  uint64_t kills_of_machine() const;

 private:
  std::optional<uint64_t> of_machine() const;

  std::string root_;
  std::string cgroup_file_;  ///< empty: the machine's counter
  std::optional<uint64_t> seen_, machine_before_;
};

}  // namespace gpumemprof
