// The host's memory in words.
#pragma once

#include <string>

#include "analysis/host/host_identity.h"

namespace gpumemprof {

/// "host memory, 1.20 GiB resident: pinned 0 B, shared 12.0 MiB, files 300 MiB, the rest 900 MiB":
/// what is unknown is in the rest. Empty where the resident memory is unknown.
std::string host_sum_text(const HostMoment& moment);

}  // namespace gpumemprof
