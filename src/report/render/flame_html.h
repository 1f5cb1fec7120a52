// Flame graphs in HTML: without script or network, readable on a phone and in the dark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/render/flame_paths.h"

namespace gpumemprof {

/// A moment to choose from: "at the peak".
struct FlameMoment {
  std::string title;
  LiveSet live;
};

/// A section with switches for the moment and for stack, module and category, which work without a
/// script. Each box has its bytes in data-b and what of them is in no box within it in data-o: the
/// latter add up to all that was live. Boxes below 1/500 of the whole are drawn as one. A grouping
/// that is not known says why. Empty without a moment.
std::string flame_figure(const std::vector<FlameMoment>& moments, const Tables& tables);

/// The section as a page of its own. `heading` may hold anything.
std::string flame_page(std::string_view heading, const std::vector<FlameMoment>& moments,
                       const Tables& tables);

}  // namespace gpumemprof
