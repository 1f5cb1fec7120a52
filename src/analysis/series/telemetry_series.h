// Telemetry as series: which samples belong together, and what each series says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/series/series.h"
#include "telemetry/reader.h"

namespace gpumemprof {

/// One memory of one process, host and rank, on one basis: figures that mean the same.
struct TelemetrySeries {
  std::string host, collector;
  std::string
      basis;  ///< what "allocated" stands for: "exact", "process_rss", "cgroup", …; or empty
  std::string command;  ///< of the process, where the tracker knew it
  int64_t pid = -1, rank = 0, device_id = -1;
  size_t events = 0;
  std::vector<double> times_s;  ///< since 1970; in the order of the file
  std::vector<double> allocated_bytes;
  std::vector<double> reserved_times_s, reserved_bytes;
  std::optional<uint64_t> total_bytes;  ///< of the device, the last that was told
  std::optional<uint64_t> peak_reserved_bytes, peak_used_bytes;
  std::optional<uint64_t> exact_peak_bytes;  ///< between samples too, where the tracker knew it
  std::optional<double> peak_used_share;  ///< most of allocated, reserved, used against the total
  uint64_t warnings = 0, criticals = 0, ooms = 0;
  /// Device used beyond what the allocator reserved: {least, most}, where both are known and the
  /// figures are of an accelerator.
  std::optional<std::pair<double, double>> gap_bytes;
  SeriesReport report;
};

struct TelemetryAnalysis {
  std::string path;
  std::string kind;  ///< "JSON", "CSV", …
  uint64_t file_bytes = 0, events = 0, samples = 0;
  int64_t start_ns = 0, end_ns = 0;     ///< since 1970; 0 without an event
  std::vector<TelemetrySeries> series;  ///< the highest peak first
  /// The lowest score of the series: a run is as good as its worst memory.
  Score score;
  uint64_t lost_bytes = 0;
  std::vector<std::string> losses, notes;
};

/// `sensitivity` as in SeriesOptions. Never fails; a file without a sample has no series and no
/// score.
TelemetryAnalysis analyze_telemetry(const Telemetry& telemetry, const std::string& path,
                                    double sensitivity);

/// Of the file that `path` stands for. Errors: those of read_telemetry(), with what else could have
/// been read.
Result<TelemetryAnalysis> analyze_samples(const std::string& path, double sensitivity);

}  // namespace gpumemprof
