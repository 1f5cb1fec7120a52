// A picture as an ExportMetricsServiceRequest of OTLP, in protobuf.
#pragma once

#include <string>
#include <string_view>

#include "picture/picture.h"

namespace gpumemprof {

/// Accelerators by the semantic conventions hw.gpu.*, all else under names of our own, which are
/// those of metric_families() with dots and without units. What is unknown has no point.
/// `points`: how many data points it has.
std::string otlp_metrics(const Picture& picture, std::string_view version, uint64_t* points);

/// "gpumemprof.recording.allocated" of "gpumemprof_recording_allocated_bytes", and its unit "By".
struct OtlpName {
  std::string name, unit;
};
OtlpName otlp_name(std::string_view family);

/// How many of `sent` points an ExportMetricsServiceResponse says were rejected, never more than
/// those; 0 for what is no such message.
uint64_t rejected_points(std::string_view response, uint64_t sent);

}  // namespace gpumemprof
