// What a report says of an analysis. No other place decides it: a terminal, a page and the summary
// of `run` differ in how much they show and in how it looks.
#pragma once

#include <string>
#include <string_view>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "analysis/driver/driver_memories.h"
#include "analysis/host/host_identity.h"
#include "analysis/series/telemetry_series.h"
#include "estimate/cost.h"
#include "report/diff_report.h"
#include "report/document.h"

namespace gpumemprof {

struct DescribeOptions {
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
  const AdviceReport* advice = nullptr;  ///< shown where there is any; may be null
  const AdviceReport* known_advice = nullptr;  ///< not shown; decides what is next
  bool shows_source = false;             ///< lines of code with their text: reads files
  size_t lines = 10;                     ///< of code, of the main device
  size_t stacks_of_line = 1;
  size_t rows = 10;          ///< of a table that says what is largest
  size_t table_rows = 20;    ///< of devices and of processes
  size_t other_devices = 0;  ///< that get a section of their own beside the main one
};
/// There is room, and what is long can be folded.
inline constexpr DescribeOptions for_page(DescribeOptions options) {
  options.lines = 100;
  options.stacks_of_line = 8;
  options.rows = 20;
  options.table_rows = 200;
  options.other_devices = 32;
  return options;
}

Document describe_analysis(const Analysis& analysis, const Tables& tables,
                           const DescribeOptions& options);

/// The answer alone: how the program ended, the request that was refused, how high memory went and
/// which lines held it. Without an allocation: `nothing`.
Section describe_peak(const Analysis& analysis, const Tables& tables,
                      const DescribeOptions& options, std::string_view nothing);

/// Of what `run --host` recorded, the memory that was highest, with its largest line; nothing where
/// describe_peak() has it already, or none was recorded.
Section describe_host_peak(const Analysis& analysis, const Tables& tables,
                           const DescribeOptions& options);

/// What a report says of the difference of two runs.
Document describe_diff(const Diff& diff, const DiffOptions& options);

/// What a report says of telemetry.
/// `analysis` has to live as long as the document: its charts draw from it.
Document describe_samples(const TelemetryAnalysis& analysis);

/// What a run costs, in words and with the arithmetic.
Section describe_cost(const Cost& cost);

/// What is used = what it is made of, a row each. What is unknown says why. Of more than
/// `most_libraries` the rest is one row.
Table identity_table(const DriverMoment& moment, const DeviceIdentity& sum,
                     size_t most_libraries = 12);

/// The host's memory in words.
/// "host memory, 1.20 GiB resident: pinned 0 B, shared 12.0 MiB, files 300 MiB, the rest 900 MiB":
/// what is unknown is in the rest. Empty where the resident memory is unknown.
std::string host_sum_text(const HostMoment& moment);

}  // namespace gpumemprof
