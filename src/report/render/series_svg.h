// Pictures of series as SVG files that stand alone: deterministic, readable in any browser.
#pragma once

#include <string>

#include "analysis/series/telemetry_series.h"

namespace gpumemprof {

/// Allocated and, where it differs, reserved bytes over time, with the peak, the limit and the
/// findings. Of many samples, the least and the most of each column of pixels are drawn, so that no
/// spike is lost. `title` may hold anything.
std::string series_svg(const TelemetrySeries& series, const std::string& title);

/// "process 12, cpu (exact)": which series, in words.
std::string series_label(const TelemetrySeries& series);

}  // namespace gpumemprof
