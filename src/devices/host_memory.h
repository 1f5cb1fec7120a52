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
  Quantity
      limit;  ///< the lowest limit of our cgroup and those above it; absent where there is none
  Quantity limit_used;  ///< of the cgroup that has the limit, without its page cache
};

/// The path of our cgroup in one hierarchy, by /proc/self/cgroup: the line "ID:CONTROLLERS:PATH"
/// that names `controller` (empty: version 2's). "" is the root of what we see.
std::string own_cgroup(const std::string& text, const std::string& controller);

/// `root` stands for "/": a test puts files of its own there.
HostMemory read_host_memory(const std::string& root = "");

/// What a process here may use at most and what of it is used: the cgroup's figures where it has a
/// limit below the machine's, else the machine's.
struct UsableMemory {
  Quantity total, used, free;
  const char* basis;  ///< "cgroup" or "machine"
};
UsableMemory usable_memory(const HostMemory& host);

}  // namespace gpumemprof
