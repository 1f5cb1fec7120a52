// Comma-separated values as RFC 4180 has them: quoted cells may hold commas, quotes and line ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

inline constexpr size_t kMaxColumns = 256;
inline constexpr size_t kMaxRowBytes = 1 << 20;

/// Yields rows in order; empty lines are passed over. `text` must outlive it.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  struct Row {
    std::vector<std::string> cells;
    size_t offset = 0;
    bool complete = true;  ///< false: the text ended within it, without a line end
  };
  /// The next row; empty at the end. Errors: kBadInput with the offset.
  Result<std::optional<Row>> next();

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace gpumemprof
