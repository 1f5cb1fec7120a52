// The timeline as an SVG that stretches to any width; its labels are HTML beside it, so that they
// stay readable on a phone.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Of every chart: lines across it, the one at the bottom not counted.
inline constexpr int kGridLines = 4;

/// A <figure>: the band between least and most live bytes of each bucket, the peak marked, axes
/// labelled, a tooltip for every bucket where `tooltips` is set (about 60 KB).
std::string timeline_figure(const Analysis& analysis, const DeviceAnalysis& device, bool tooltips);

/// What the first column of a chart is marked with: nobody looks for less than its width.
std::string axis_start(uint64_t since_start_ns, uint64_t column_ns);

/// A round number of bytes at or above `bytes`: 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of two
/// units.
uint64_t axis_top(uint64_t bytes);

}  // namespace gpumemprof
