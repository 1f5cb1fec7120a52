// The gate's files: a baseline that a repository keeps, and what one run measured. Both are text
// from anybody: bounds, and an error of one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/memory_baseline.h"

namespace gpumemprof {

inline constexpr size_t kMostBaselineBytes = 32 << 20;
inline constexpr size_t kMostReasonBytes = 2000;
inline constexpr size_t kMostReasons = 100;  ///< the newest are kept

/// Sorted, a line of code a line of text. Ends with a newline.
std::string baseline_json(const MemoryBaseline& baseline);
/// Errors: kBadInput with the byte where it is no JSON, else with what of it is wrong;
/// kUnsupported for a later major version.
Result<MemoryBaseline> parse_baseline(std::string_view text);

/// The same of measured subjects, with what lived at the end.
std::string measurement_json(const std::vector<PeakSubject>& subjects, const std::string& version);
/// Errors: as parse_baseline().
Result<std::vector<PeakSubject>> parse_measurement(std::string_view text);

}  // namespace gpumemprof
