// What is in which cell of a terminal. No terminal is needed to make or to look at one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

enum class Style : uint8_t {
  kNormal,
  kDim,
  kBold,
  kTab,
  kChosenTab,
  kHeader,    ///< of a table
  kSelected,  ///< the row that keys act on
  kGood,
  kWarning,
  kCritical,
  kGraph,
};
inline constexpr int kStyleCount = 11;

struct Cell {
  char32_t text = U' ';
  Style style = Style::kNormal;
  bool operator==(const Cell&) const = default;
};

/// Every character takes one cell: what is wider, or joins with the one before, becomes "?".
class Screen {
 public:
  Screen(int width, int height);
  int width() const { return width_; }
  int height() const { return height_; }
  const Cell& at(int x, int y) const { return cells_[index(x, y)]; }

  /// UTF-8 at (x, y); cut at the edge and outside. Returns the column after it.
  int put(int x, int y, std::string_view text, Style style = Style::kNormal);
  /// The last `width` columns before `x_end` hold the text, as numbers in a table; cut at the left.
  void put_right(int x_end, int y, std::string_view text, Style style = Style::kNormal);
  /// Changes the style of a whole row.
  void paint_row(int y, Style style);

  /// A row as UTF-8 without blanks at its end.
  std::string line(int y) const;

 private:
  size_t index(int x, int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x);
  }
  int width_, height_;
  std::vector<Cell> cells_;
};

/// Characters of UTF-8 text, one cell each: control characters, what is wider than a cell, joins or
/// turns the direction of writing, and bytes that are no UTF-8 become "?".
std::u32string cells_of(std::string_view text);

void append_utf8(std::string* out, char32_t character);

/// `part` of `whole` as a bar of `width` characters; a part that is not 0 shows.
std::string bar_text(uint64_t part, uint64_t whole, int width, bool unicode);

/// The last `width` values as an area of `height` rows, the topmost first, from 0 to the highest of
/// them; newest at the right.
std::vector<std::string> area_chart(const std::vector<uint64_t>& values, int width, int height,
                                    bool unicode);

/// The last `width` values, from 0 to the highest of them; shorter where there are fewer.
std::string sparkline(const std::vector<uint64_t>& values, int width, bool unicode);

}  // namespace gpumemprof
