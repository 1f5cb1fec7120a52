// Conditions under which an analysis is to fail, for continuous integration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

struct FailCondition {
  std::optional<FindingKind> finding;  ///< absent: it is about the peak
  uint64_t peak_bytes = 0;  ///< more than this fails
};

/// "leak", "oom", "fragmentation", any kind of finding, or "peak>20GiB"; several with commas
/// between. Errors: kUsage with one sentence that says what is possible.
Result<std::vector<FailCondition>> parse_fail_conditions(std::string_view text);

/// One phrase for each condition that holds, in their order. A finding that is only informed of
/// ("info") holds none; the peak is that of main_device().
std::vector<std::string> failures(const std::vector<FailCondition>& conditions,
                                  const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof
