// How many events of a file are missing. Each counts once, however it is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "format/format.h"
#include "recording/raw_file.h"
#include "recording/sealed_file.h"

namespace gpumemprof {

struct MissingEvents {
  uint64_t events = 0;
  const char* reason = "";
  /// Why an unknown number of events may be missing as well.
  std::vector<std::string> uncounted;
};

/// The first page, read before the chunks: a live file only gains.
struct FirstPage {
  format::FileHeader header{};
  format::FileState state{};
  format::FileCounts counts{};
  std::optional<format::FinishedFile> finished;
  std::optional<format::JobPlace> job;
};
/// Errors: those of read_file_header().
Result<FirstPage> read_first_page(File& file);

/// A finished file has its number of events; an unfinished one the number written to it.
/// `raw_events`: those read beside the sealed ones. Call it after all were read.
MissingEvents missing_events(File& file, const FirstPage& page, const SealedFile& sealed,
                             RawFile& raw, uint64_t raw_events);

}  // namespace gpumemprof
