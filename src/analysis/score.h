// How good memory over time is, and its shape.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding.h"

namespace gpumemprof {

/// Figures behind an answer, by name; names end in their unit. In the order they are shown.
using Evidence = std::vector<std::pair<std::string, double>>;

/// pattern_type: "steady_growth", "sawtooth", "spike" or "fragmentation".
struct SeriesPattern {
  std::string pattern_type;
  Severity severity = Severity::kInfo;
  std::string description;
  Evidence evidence;
};

/// One part of the score; absent with a reason where the series cannot tell.
struct ScorePart {
  std::string name;  ///< "peak", "growth", "cleanup", "spikes", "fragmentation"
  double weight = 0;
  std::optional<double> value;  ///< 0 to 10
  std::string reason;           ///< why it is absent; else what it says
};

struct Score {
  std::optional<double> value;  ///< 0 to 10: the weighted mean of the parts that are known
  std::string reason;           ///< why there is none
  bool hides_growth = false;  ///< there is none because most of memory grows, and nobody knows why
  std::vector<ScorePart> parts;
};

}  // namespace gpumemprof
