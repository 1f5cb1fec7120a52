// What the kernel says now of host memory, as the sums that reports show.
#pragma once

#include "analysis/host/host_identity.h"
#include "devices/cgroup_memory.h"
#include "devices/process_memory.h"

namespace gpumemprof {

HostTerm host_term(const Quantity& quantity);
HostMoment host_moment(const ProcessMemory& memory, uint64_t time_ns);
CgroupMoment cgroup_moment(const HostMemory& host, uint64_t time_ns);

}  // namespace gpumemprof
