#include "top/screen.h"

#include <algorithm>
#include <span>

namespace gpumemprof {
namespace {

/// The length that a first byte of UTF-8 promises; 0 for one that begins nothing.
int utf8_length(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

/// Whether every terminal shows it in one cell. Letters of the alphabets of Europe, and what this
/// view draws with; the rest of the world's writing is shown as "?", which moves no column.
bool takes_one_cell(char32_t c) {
  if (c >= 0x20 && c < 0x7f) return true;
  if (c >= 0xa1 && c < 0x300) return c != 0xad;
  if (c >= 0x391 && c < 0x460) return true;
  return c == U'…' || c == U'·' || (c >= 0x2580 && c <= 0x259f) || (c >= 0x2500 && c < 0x2580);
}

}  // namespace

std::u32string cells_of(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int length = utf8_length(first);
    char32_t character = length == 1 ? first : first & (0x7f >> length);
    bool is_whole = length > 0 && i + static_cast<size_t>(length) <= text.size();
    for (int k = 1; is_whole && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
      is_whole = (next & 0xc0) == 0x80;
      character = character << 6 | (next & 0x3f);
    }
    i += is_whole ? static_cast<size_t>(length) : 1;
    out += is_whole && takes_one_cell(character) ? character : U'?';
  }
  return out;
}

void append_utf8(std::string* out, char32_t c) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xc0 | c >> 6);
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    *out += static_cast<char>(0xe0 | c >> 12);
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

Screen::Screen(int width, int height)
    : width_(std::clamp(width, 1, 1000)),
      height_(std::clamp(height, 1, 1000)),
      cells_(static_cast<size_t>(width_) * static_cast<size_t>(height_)) {}

int Screen::put(int x, int y, std::string_view text, Style style) {
  for (const char32_t character : cells_of(text)) {
    if (x >= 0 && x < width_ && y >= 0 && y < height_) cells_[index(x, y)] = {character, style};
    ++x;
  }
  return x;
}

void Screen::put_right(int x_end, int y, std::string_view text, Style style) {
  put(x_end - static_cast<int>(cells_of(text).size()), y, text, style);
}

void Screen::paint_row(int y, Style style) {
  if (y < 0 || y >= height_) return;
  for (int x = 0; x < width_; ++x) cells_[index(x, y)].style = style;
}

std::string Screen::line(int y) const {
  std::string out;
  size_t end = 0;
  for (int x = 0; x < width_; ++x) {
    append_utf8(&out, at(x, y).text);
    if (at(x, y).text != U' ') end = out.size();
  }
  out.resize(end);
  return out;
}

std::string bar_text(uint64_t part, uint64_t whole, int width, bool unicode) {
  if (width <= 0) return "";
  const double share =
      whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  const int eighths = std::max(part > 0 ? 1 : 0, static_cast<int>(share * width * 8));
  std::string out;
  for (int i = 0; i < width; ++i) {
    const int filled = std::clamp(eighths - 8 * i, 0, 8);
    if (unicode)
      append_utf8(&out, filled == 0 ? U'·' : static_cast<char32_t>(0x2590 - filled));
    else
      out += filled > 0 ? '#' : '.';
  }
  return out;
}

std::string sparkline(const std::vector<uint64_t>& values, int width, bool unicode) {
  constexpr std::string_view kPlain = "_.:-=+*#";
  if (values.empty() || width <= 0) return "";
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  const uint64_t top = std::max<uint64_t>(1, *std::max_element(values.end() - count, values.end()));
  std::string out;
  for (size_t i = values.size() - count; i < values.size(); ++i) {
    const double share = static_cast<double>(values[i]) / static_cast<double>(top);
    const int level = std::clamp(static_cast<int>(share * 8), 0, 7);
    if (unicode)
      append_utf8(&out, static_cast<char32_t>(0x2581 + level));
    else
      out += kPlain[static_cast<size_t>(level)];
  }
  return out;
}

std::vector<std::string> area_chart(const std::vector<uint64_t>& values, int width, int height,
                                    bool unicode) {
  std::vector<std::string> rows(static_cast<size_t>(std::max(height, 0)));
  if (values.empty() || width <= 0) return rows;
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  const auto shown = std::span(values).last(count);
  const uint64_t top = std::max<uint64_t>(1, *std::ranges::max_element(shown));
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].assign(static_cast<size_t>(width) - count, ' ');
    const int below = 8 * static_cast<int>(rows.size() - 1 - r);
    for (const uint64_t value : shown) {
      const double share = static_cast<double>(value) / static_cast<double>(top);
      const int eighths = std::max(value > 0 ? 1 : 0, static_cast<int>(share * height * 8));
      const int filled = std::clamp(eighths - below, 0, 8);
      if (unicode)
        append_utf8(&rows[r], filled == 0 ? U' ' : static_cast<char32_t>(0x2580 + filled));
      else
        rows[r] += filled >= 4 || (filled > 0 && below == 0) ? '#' : ' ';
    }
  }
  return rows;
}

}  // namespace gpumemprof
