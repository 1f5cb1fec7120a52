// The reader of telemetry and all that is made of it, on any bytes.
#include <stdint.h>
#include <stdlib.h>

#include <cmath>
#include <string_view>

#include "analysis/series/telemetry_series.h"
#include "input/input.h"
#include "telemetry/reader.h"
#include "work_limit.h"

using namespace gpumemprof;

/// Of the room of inputs, which needs all readers: nothing here has a folder.
std::string gpumemprof::samples_path(const std::string& path) { return path; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto read = parse_telemetry(text);
  if (!read) return 0;
  for (const TelemetryEvent& event : read->events) {
    // What was read once must be written and read again without a change.
    const std::string line = telemetry_json(event);
    auto again = parse_telemetry_record(line);
    if (!again || telemetry_json(*again) != line) abort();
  }
  const TelemetryAnalysis analysis = analyze_telemetry(*read, "fuzz", 0.05);
  for (const TelemetrySeries& series : analysis.series) {
    const auto& score = series.report.score.value;
    if (score && !(*score >= 0 && *score <= 10)) abort();
    for (const SeriesFinding& finding : series.report.findings) {
      if (!std::isfinite(finding.bytes) || finding.bytes < 0) abort();
    }
  }
  return 0;
}
