// The page as one file that needs no server: its answers are in it.
#pragma once

#include <cstddef>
#include <string>

#include "page/service.h"

namespace gpumemprof {

struct OneFileOptions {
  size_t most_bytes = 10'000'000;
  size_t moments = 24;  ///< at which all is exact, beside the peak and what was refused
};

/// The page with as many answers as fit, the most telling first: the whole run by every dimension,
/// the peak, refused requests, moments as far apart as they can be, then windows of half the
/// length, of a quarter, …. It says which moments are exact. Waits until all files are read.
/// Errors: those of the files; kUnsupported where this command has no page.
Result<std::string> one_file_page(PageService& service, const OneFileOptions& options);

}  // namespace gpumemprof
