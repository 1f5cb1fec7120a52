// Something that is wrong, or worth changing, with the figures that prove it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/series.h"

namespace gpumemprof {

struct Finding {
  std::string kind;  ///< "out_of_memory", "fragmentation", "cache_slack", …
  Severity severity = Severity::kInfo;
  std::string title;  ///< one sentence
  std::optional<uint64_t> bytes;
  /// Figures behind it, by name; names end in their unit. In the order they are shown.
  std::vector<std::pair<std::string, uint64_t>> evidence;
  uint32_t stack = 0;   ///< StackTable id of the line that matters; 0: none
  std::string fix;      ///< what to do, one sentence; empty where nothing is proved to help
  uint16_t device = 0;  ///< index in Tables::devices
};

}  // namespace gpumemprof
