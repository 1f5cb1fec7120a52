// How many events of a file are not in it any more. Each is counted once, whoever misses it.
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
  /// Why more may be missing, in a number that nobody knows.
  std::vector<std::string> uncounted;
};

/// What the first page says, read before the chunks are: a live file only gains.
struct FirstPage {
  format::FileHeader header{};
  format::FileState state{};
  format::FileCounts counts{};
  std::optional<format::FinishedFile> finished;
};
/// Errors: those of read_file_header().
Result<FirstPage> read_first_page(File& file);

/// A finished file says how many events it has; one that is not, how many were written to it.
/// `raw_events`: those that were read beside the sealed ones. Call it when all were.
MissingEvents missing_events(File& file, const FirstPage& page, const SealedFile& sealed,
                             RawFile& raw, uint64_t raw_events);

}  // namespace gpumemprof
