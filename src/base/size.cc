#include "base/size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "base/in_quotes.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kPrefixes = "kmgtpe";
constexpr size_t kFractionDigits = 9;  // 1e9 * 2^60 fits the 128-bit product below

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::unexpected<Error> not_a_size(std::string_view text) {
  return fail(ErrorCode::kUsage,
              in_quotes(text) + " is not a size: write 24GiB, 24GB, 500MiB or bytes");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Bytes a unit stands for; 0 where there is no such unit.
uint64_t unit_bytes(std::string_view unit) {
  std::string lower(unit);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower.empty() || lower == "b") return 1;
  size_t power = kPrefixes.find(lower[0]);
  if (power == std::string_view::npos) return 0;
  std::string_view rest = std::string_view(lower).substr(1);
  uint64_t base = rest == "b" ? 1000 : 1024;
  if (!rest.empty() && rest != "b" && rest != "i" && rest != "ib") return 0;
  uint64_t bytes = base;
  for (size_t i = 0; i < power; ++i) bytes *= base;
  return bytes;
}

std::string three_digits(uint64_t size_bytes, bool is_up) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size_bytes < 1024) return std::to_string(size_bytes) + " B";
  double value = static_cast<double>(size_bytes);
  const auto in_parts = [&](double parts) {  // of one, rounded up or left to snprintf
    return is_up ? std::ceil(value * parts) / parts : value;
  };
  size_t unit = 0;
  // 999.5 and more has four digits before the point; up to 1023 they stay, "1024" never shows.
  while (in_parts(1) >= 1023.5 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  const int decimals = in_parts(100) < 9.995 ? 2 : in_parts(10) < 99.95 ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", decimals,
                in_parts(decimals == 2 ? 100 : decimals == 1 ? 10 : 1), kUnits[unit]);
  return text;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  std::string_view rest = trim(text);
  unsigned __int128 value = 0;
  size_t digits = 0;
  for (; digits < rest.size() && is_digit(rest[digits]); ++digits) {
    value = value * 10 + (rest[digits] - '0');
    if (value > UINT64_MAX) return fail(ErrorCode::kUsage, in_quotes(text) + " is too large");
  }
  if (digits == 0) return not_a_size(text);
  rest.remove_prefix(digits);
  uint64_t numerator = 0, denominator = 1;
  bool has_fraction = !rest.empty() && rest[0] == '.';
  if (has_fraction) {
    rest.remove_prefix(1);
    size_t n = 0;
    for (; n < rest.size() && is_digit(rest[n]); ++n) {
      if (n >= kFractionDigits) continue;
      numerator = numerator * 10 + static_cast<uint64_t>(rest[n] - '0');
      denominator *= 10;
    }
    if (n == 0) return not_a_size(text);
    rest.remove_prefix(n);
  }
  rest = trim(rest);
  uint64_t unit = unit_bytes(rest);
  if (unit == 0 || (has_fraction && unit == 1)) return not_a_size(text);
  value = value * unit + static_cast<unsigned __int128>(numerator) * unit / denominator;
  if (value > UINT64_MAX) return fail(ErrorCode::kUsage, in_quotes(text) + " is too large");
  return static_cast<uint64_t>(value);
}

Result<uint64_t> parse_capacity(std::string_view text) {
  const Result<uint64_t> bytes = parse_size(text);
  const std::string_view number = trim(text);
  if (bytes && *bytes == 0) return fail(ErrorCode::kUsage, "the capacity must be above 0");
  if (bytes && *bytes < kMiB && std::ranges::all_of(number, is_digit)) {
    return fail(ErrorCode::kUsage, in_quotes(text) + " is a number of bytes: write a unit, such as " +
                                       std::string(number) + "GiB");
  }
  return bytes;
}

std::string format_bytes(uint64_t size_bytes) { return three_digits(size_bytes, false); }

std::string format_bytes_up(uint64_t size_bytes) { return three_digits(size_bytes, true); }

}  // namespace gpumemprof
