// A picture as metrics, in the order in which /metrics tells them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "picture/picture.h"

namespace gpumemprof {

using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

struct MetricSample {
  MetricLabels labels;
  std::variant<uint64_t, int64_t, double> value;
};

/// kCounter: only ever grows.
enum class MetricKind { kGauge, kCounter };

/// Samples of one metric. The texts are constants of the program.
struct MetricFamily {
  std::string_view name;  ///< Prometheus', without a counter's "_total"; ends with its unit
  MetricKind kind = MetricKind::kGauge;
  std::string_view unit;  ///< "bytes", "ratio", or empty
  std::string_view help;
  std::vector<MetricSample> samples;
};

/// Whose recording it is: pid, program, host where it is another one, rank where it is known.
MetricLabels labels_of(const PictureRecording& recording);

/// Bytes, seconds and counts, never prefixes; what is unknown has no sample, and a family without
/// samples is not there. Names and labels: docs/commands/serve.md. Programs are named without their
/// arguments.
std::vector<MetricFamily> metric_families(const Picture& picture, std::string_view version);

}  // namespace gpumemprof
