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
  std::string text;         ///< as typed
};

/// "leak", "oom", "fragmentation", any kind of finding, or "peak>20GiB"; several with commas
/// between. Errors: kUsage with one sentence that says what is possible.
Result<std::vector<FailCondition>> parse_fail_conditions(std::string_view text);

struct FailVerdict {
  std::vector<std::string> failures;  ///< one phrase for each condition that holds, in their order
  std::string unknown;  ///< those of which that is unknown, and why: a phrase; empty: none
};

/// A finding that is only informed of ("info") holds none; the peak is that of main_device(). Where
/// events were lost, or a rank has no recording, a condition that does not hold is unknown.
FailVerdict judge_conditions(const std::vector<FailCondition>& conditions,
                             const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof
