// How much of the host's memory was left when a recorded process was last seen.
#pragma once

#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

struct RecordedSamples;  // recording/samples_file.h

/// Of every process that the samples have, at its last sample: of its cgroup or of what it may map
/// (ulimit -v), where that has a limit and less is left in it, else of the machine.
std::vector<HostRoom> host_rooms(const std::vector<RecordedSamples>& samples);

}  // namespace gpumemprof
