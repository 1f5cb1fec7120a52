// Requested, allocated and reserved bytes of a replayed snapshot on one axis, and its segments.
#pragma once

#include <string>

#include "analysis/analysis.h"
#include "analysis/replay/allocator_moment.h"

namespace gpumemprof {

/// A <figure> of the three highest levels of each span, over time, or over events where the trace
/// has no times. Without the two lower lines where the replay contradicts the file.
std::string levels_figure(const Analysis& analysis, const DeviceAnalysis& device);

/// A <figure> with a row for each of the largest segments: what is live, what is pinned, what is
/// wholly free. Blocks have their sizes as tooltips.
std::string segments_figure(const AllocatorMoment& moment);

}  // namespace gpumemprof
