// Finds the records in a text of JSON without building it all: objects one after the other, be they
// lines or elements of an array. What is wrong is told with its place.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"

namespace gpumemprof {

inline constexpr size_t kMaxRecordBytes = 1 << 20;
inline constexpr int kMaxJsonDepth = 64;  ///< deeper is no record of ours, and recursion is costly

/// True where brackets nest deeper than kMaxJsonDepth; brackets in strings do not count.
bool is_nested_too_deep(std::string_view json);

/// One JSON value beginning at `at`: how long it is. Empty where the text ends before it does.
/// Errors: kBadInput with the offset: nested too deep, longer than `most` bytes.
Result<std::optional<size_t>> json_object_length(std::string_view text, size_t at, size_t most);

/// Yields objects in order. `text` must outlive it.
class RecordScanner {
 public:
  /// `at`: where to begin; `in_array`: behind a '['.
  RecordScanner(std::string_view text, size_t at, bool in_array)
      : text_(text), at_(at), in_array_(in_array) {}

  struct Record {
    std::string_view json;
    size_t offset;
  };
  /// The next object; empty at the end. Errors: kBadInput with the offset.
  Result<std::optional<Record>> next();
  /// After the end: bytes behind the last whole record that belong to one cut short.
  size_t truncated_bytes() const { return truncated_bytes_; }
  /// After the end: true where an array has no ']'.
  bool is_unclosed() const { return in_array_ && !closed_; }
  /// After the end: where the array's ']' is, or the end of the text.
  size_t offset() const { return at_; }

 private:
  void skip_spaces();
  std::string_view text_;
  size_t at_;
  bool in_array_;
  bool any_ = false;
  bool closed_ = false;
  size_t truncated_bytes_ = 0;
};

}  // namespace gpumemprof
