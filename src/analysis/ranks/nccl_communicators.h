// What the library of a job's collectives has of the devices and of the host, by the driver's calls.
#pragma once

#include "analysis/analysis.h"

namespace gpumemprof {

/// Adds "nccl_communicators" for each device of a process on which libnccl or librccl has 32 MiB
/// and a 20th of all that the driver handed out at the peak, or has pinned so much of the host's.
/// No framework counts it.
void add_nccl_communicators(const Tables& tables, Analysis* analysis);

}  // namespace gpumemprof
