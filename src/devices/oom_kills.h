// How often the kernel killed for want of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpumemprof {

/// Counts kills in our cgroup (memory.events), or on the machine (/proc/vmstat) where the cgroup
/// does not say. Not thread-safe.
class OomKills {
 public:
  explicit OomKills(std::string root = "");
  /// Since the last call, or since the object was made.
  uint64_t new_kills();
  /// Since the cgroup or the machine began; empty where nobody counts.
  std::optional<uint64_t> all() const;

 private:
  std::string root_;
  std::optional<uint64_t> seen_;
};

}  // namespace gpumemprof
