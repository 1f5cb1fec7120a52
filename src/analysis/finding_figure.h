// A figure of a finding's evidence, by its name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/finding.h"

namespace gpumemprof {

/// Null where it has none of that name. `finding`: const or not, as the figure then is.
auto* find_figure(auto& finding, std::string_view name) {
  const auto found =
      std::ranges::find(finding.evidence, name, &std::pair<std::string, uint64_t>::first);
  return found == finding.evidence.end() ? nullptr : &found->second;
}

/// The same of a fact.
inline const std::string* find_fact(const Finding& finding, std::string_view name) {
  const auto found =
      std::ranges::find(finding.facts, name, &std::pair<std::string, std::string>::first);
  return found == finding.facts.end() ? nullptr : &found->second;
}

}  // namespace gpumemprof
