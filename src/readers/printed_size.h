// Sizes as messages print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpumemprof {

/// A size as a message prints it, "1.95 GiB". What was printed was rounded, so the true size lies
/// from `least_bytes` to `most_bytes`, both included; plain bytes are exact.
struct PrintedSize {
  std::string text;
  uint64_t bytes = 0;  ///< the printed number itself, rounded down
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

/// The size that `text` begins with, after one space at most; absent where there is none or it does
/// not fit 64 bits. Reads "bytes", "B", "KiB" to "EiB" and "KB" to "EB" (decimal).
std::optional<PrintedSize> parse_printed_size(std::string_view text);

/// A size that is known to the byte; only its text is rounded.
PrintedSize exact_size(uint64_t bytes);

}  // namespace gpumemprof
