#include "readers/printed_size.h"

#include <array>

#include "base/size.h"

namespace gpumemprof {
namespace {

using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  uint64_t bytes;
};
// Longer names first: "B" begins none of them, but "bytes" must not be read as "B".
constexpr std::array<Unit, 13> kUnits = {{{"bytes", 1},
                                          {"KiB", 1ull << 10},
                                          {"MiB", 1ull << 20},
                                          {"GiB", 1ull << 30},
                                          {"TiB", 1ull << 40},
                                          {"PiB", 1ull << 50},
                                          {"EiB", 1ull << 60},
                                          {"KB", 1000},
                                          {"MB", 1000'000},
                                          {"GB", 1000'000'000},
                                          {"TB", 1000'000'000'000},
                                          {"byte", 1},
                                          {"B", 1}}};
constexpr size_t kMaxDigits = 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::optional<PrintedSize> parse_printed_size(std::string_view text) {
  size_t at = text.starts_with(' ') ? 1 : 0;
  const size_t begin = at;
  Wide number = 0, divisor = 1;
  size_t digits = 0;
  for (bool fraction = false; at < text.size(); ++at) {
    if (text[at] == '.' && !fraction && digits != 0 && at + 1 < text.size() &&
        is_digit(text[at + 1])) {
      fraction = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    if (++digits > kMaxDigits) return std::nullopt;
    number = number * 10 + static_cast<unsigned>(text[at] - '0');
    if (fraction) divisor *= 10;
  }
  if (digits == 0) return std::nullopt;
  if (at < text.size() && text[at] == ' ') ++at;
  for (const Unit& unit : kUnits) {
    if (!text.substr(at).starts_with(unit.name)) continue;
    const size_t end = at + unit.name.size();
    if (end < text.size() && is_letter(text[end])) continue;
    // 10^20 * 2^60 fits 128 bits.
    const Wide bytes = number * unit.bytes / divisor;
    if (bytes >> 64 != 0 && bytes != Wide{1} << 64) return std::nullopt;
    PrintedSize size{.text = std::string(text.substr(begin, end - begin))};
    const auto clamp = [](Wide value) {
      return value >> 64 != 0 ? UINT64_MAX : static_cast<uint64_t>(value);
    };
    size.bytes = clamp(bytes);
    const Wide twice = 2 * number * unit.bytes, half = unit.bytes;
    const bool is_exact = unit.bytes == 1;
    size.least_bytes =
        is_exact ? size.bytes : clamp((twice > half ? twice - half : 0) / (2 * divisor));
    size.most_bytes =
        is_exact ? size.bytes : clamp((twice + half + 2 * divisor - 1) / (2 * divisor));
    return size;
  }
  return std::nullopt;
}

PrintedSize exact_size(uint64_t bytes) { return {format_bytes(bytes), bytes, bytes, bytes}; }

}  // namespace gpumemprof
