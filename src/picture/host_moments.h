// What the kernel says now of host memory, as the sums that reports show.
#pragma once

#include "analysis/host/host_identity.h"
#include "devices/cgroup_memory.h"
#include "devices/process_memory.h"

namespace gpumemprof {

HostTerm host_term(const Quantity& quantity);
/// `may_pin`: the process has a GPU open, or it may not be seen whether it has. Else nothing is pinned.
HostMoment host_moment(const ProcessMemory& memory, bool may_pin, uint64_t time_ns);
CgroupMoment cgroup_moment(const HostMemory& host, uint64_t time_ns);

}  // namespace gpumemprof
