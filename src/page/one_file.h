// The page as one file that needs no server: it contains its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "page/service.h"

namespace gpumemprof {

struct OneFileOptions {
  /// The two files, or two moments of one, to compare: by default at the peaks.
  struct Comparison {
    size_t device = 0, other = 1;
    std::optional<size_t> other_device = {};
    std::optional<uint32_t> event = {}, other_event = {};
  };
  struct Moment {
    size_t device = 0;
    uint32_t moment = 0;
  };

  size_t most_bytes = 10'000'000;
  size_t moments = 24;  ///< at which all is exact, beside the peak and what was refused
  std::string start = {};  ///< what is looked at first, as the page's address says it
  std::optional<Comparison> comparison = {};  ///< of two files: that of their first devices
  std::optional<Moment> wanted = {};          ///< of the first file, exact too
};

/// The page with as many answers as fit, most important first: the whole run by every dimension,
/// the peak, refused requests, moments as far apart as possible, then windows of half the length,
/// of a quarter, …. It lists the exact moments. Waits until all files are read. Errors: those of
/// the files; kUnsupported if this command has no page.
Result<std::string> one_file_page(PageService& service, const OneFileOptions& options);

}  // namespace gpumemprof
