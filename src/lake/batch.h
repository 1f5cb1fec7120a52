// Rows of a table in columns, laid out as Arrow has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// A column of 64-bit integers or of text; any value may be unknown.
struct LakeColumn {
  explicit LakeColumn(std::string_view column, bool text = false) : name(column), is_text(text) {}

  std::string name;
  bool is_text;
  std::vector<int64_t> numbers;      ///< where it is not text
  std::vector<int32_t> offsets{0};   ///< in `texts`, one more than there are rows
  std::string texts;
  std::vector<uint8_t> known;        ///< a bit each, least significant first
  int64_t rows = 0, unknown = 0;

  void add(int64_t number);
  /// Unknown where it is 2^63 or more: no column of a lake holds such a number.
  void add_unsigned(uint64_t number);
  void add(std::string_view text);
  void add_unknown();
  void add_or_unknown(std::optional<uint64_t> number) {
    number ? add_unsigned(*number) : add_unknown();
  }
  /// Made printable; unknown where it is empty.
  void add_words(std::string_view words);
  bool is_known(size_t row) const { return (known[row / 8] >> (row % 8) & 1) != 0; }
  std::string_view text(size_t row) const;

 private:
  void add_bit(bool is_known);
};

/// Of one length.
using LakeBatch = std::vector<LakeColumn>;
/// Without rows, of these columns: "step kind:text".
LakeBatch batch_of(std::string_view columns);

inline size_t rows_of(const LakeBatch& batch) {
  return batch.empty() ? 0 : static_cast<size_t>(batch[0].rows);
}

/// The rows of one table, a batch at a time. For one thread.
class LakeRows {
 public:
  static constexpr size_t kMostRows = 32 << 10;       ///< of a batch
  static constexpr size_t kMostTextBytes = 16 << 20;  ///< after which a batch ends
  virtual ~LakeRows() = default;
  /// Without rows: the table's columns.
  virtual LakeBatch columns() const = 0;
  /// Adds the next rows to an empty batch of columns(); none at the end.
  virtual void fill(LakeBatch* batch) = 0;
};

}  // namespace gpumemprof
