// The memory of this machine, and what of it we may use.
#pragma once

#include <string>

#include "devices/quantity.h"

namespace gpumemprof {

struct HostMemory {
  Quantity total;  ///< MemTotal
  Quantity
      available;  ///< MemAvailable: what could be had without swapping, as the kernel estimates
  Quantity used;  ///< total - available
  /// Of our cgroup and those above it the limit that leaves the least room: a parent may be full
  /// where its child is not. Absent where there is none.
  Quantity limit;
  Quantity limit_used;     ///< of that cgroup, without its page cache
  std::string limited_by;  ///< its folder's name
  /// Where the kernel tells of that cgroup, or of our own where none limits us; empty: none counts.
  std::string cgroup_folder;
  bool cgroup_is_v1 = false;
};

/// The path of our cgroup in one hierarchy, by /proc/self/cgroup: the line "ID:CONTROLLERS:PATH"
/// that names `controller` (empty: version 2's). "" is the root of what we see.
std::string own_cgroup(const std::string& text, const std::string& controller);

/// `root` stands for "/": a test puts files of its own there.
HostMemory read_host_memory(const std::string& root = "");

/// What a process here may use at most and what of it is used: of the cgroup, or of the machine
/// where that has less room left.
struct UsableMemory {
  Quantity total, used, free;
  const char* basis;  ///< "cgroup" or "machine"
};
UsableMemory usable_memory(const HostMemory& host);

}  // namespace gpumemprof
