// Baselines and measurements of the gate on any bytes: what is read is written and read again as it
// was, and differs from itself in nothing.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "analysis/compare/memory_baseline_file.h"
#include "work_limit.h"

using namespace gpumemprof;

namespace {

void check(const Error& error, size_t size) {
  const bool is_one_line = error.message.find('\n') == std::string::npos;
  if (!is_one_line || error.message.empty() || (error.offset && *error.offset > size + 1)) abort();
}

void compare_with_itself(const std::vector<PeakSubject>& subjects) {
  for (const PeakComparison& peak : compare_peaks(subjects, subjects, 0))
    if (peak.verdict != PeakVerdict::kWithin || peak.has_failed()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto baseline = parse_baseline(text)) {
    compare_with_itself(baseline->subjects);
    const std::string written = baseline_json(*baseline);
    const auto again = parse_baseline(written);
    if (!again || baseline_json(*again) != written) abort();
  } else {
    check(baseline.error(), size);
  }
  if (const auto measured = parse_measurement(text)) {
    compare_with_itself(*measured);
    const std::string written = measurement_json(*measured, "1");
    const auto again = parse_measurement(written);
    if (!again || measurement_json(*again, "1") != written) abort();
  } else {
    check(measured.error(), size);
  }
  return 0;
}
