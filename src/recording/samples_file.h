// Reads what `run` sampled beside the recorded files (*.gms).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/device_samples.h"

namespace gpumemprof {

class File;  // base/file.h

/// All samples of one `run`, as series over its samples.
struct RecordedSamples {
  struct Look {
    uint64_t time_ns = 0;  ///< on the clock of the recording's events
    SampleCause cause = SampleCause::kPeriod;
  };
  /// The value from this sample on.
  struct Point {
    uint32_t look = 0;  ///< index in `looks`
    SampledKind kind = SampledKind::kGone;
    uint64_t number = 0;  ///< of a kText and a kAbsent the index in `texts`
  };
  std::string path, host;
  uint32_t run_pid = 0;
  std::vector<Look> looks;  ///< in order of time
  std::vector<SampleKey> series;
  std::vector<std::vector<Point>> points;  ///< by series, in order of `look`
  std::vector<std::string> texts;
  uint64_t missing_looks = 0;         ///< taken and not there: damage, or --max-disk
  std::vector<std::string> problems;  ///< one sentence each; of very many the first

  /// A series' value at a sample; null if it is not reported there.
  const Point* at(size_t of_series, size_t look) const;
  /// Index of a series, or SIZE_MAX.
  size_t find(const SampleKey& key) const;
};

/// One file, on its own clock. A `run` may be writing it: an inconsistent read is repeated, at most
/// `tries` times. Errors: those of read_file_header; later damage is reported in `problems`.
Result<RecordedSamples> read_samples_file(const std::string& path, int tries = 4);
Result<RecordedSamples> read_samples_file(File& file, int tries = 4);

/// The samples in the folders among `paths` and beside the .gmp files among them, on the clock of
/// open_recording's events. Unreadable files are reported in `problems`.
std::vector<RecordedSamples> read_samples(const std::vector<std::string>& paths,
                                          std::vector<std::string>* problems);

}  // namespace gpumemprof
