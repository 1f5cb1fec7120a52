// Paths of modules as reports write several equal ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace gpumemprof {

inline bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// "Net.layers" of "Net.layers.0"; "" where there is nothing above.
inline std::string_view module_above(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

/// The part of a path without its number: "*" for "3", "Net#*" for "Net#2"; else as it is. "*" is a
/// number, too.
inline std::string without_number(std::string_view part) {
  const size_t begin = part.rfind('#') + 1;  // npos + 1 is 0
  const std::string_view number = part.substr(begin);
  return std::string(part.substr(0, begin)) + (is_number(number) ? "*" : std::string(number));
}

/// "blocks.*.attn" for "blocks.3.attn", "Net#*.attn" for "Net#2.attn"; unchanged if no part has a
/// number.
inline std::string without_numbers(std::string_view name) {
  std::string out;
  for (size_t from = 0; from <= name.size();) {
    const size_t end = std::min(name.find('.', from), name.size());
    if (from != 0) out += '.';
    out += without_number(name.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

/// Orders names by their letters, and the numbers in them as numbers: "Net#2" before "Net#10".
struct ByNumbers {
  bool operator()(std::string_view a, std::string_view b) const {
    constexpr std::string_view kDigits = "0123456789";
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      const size_t end_a = std::min(a.find_first_not_of(kDigits, i), a.size());
      const size_t end_b = std::min(b.find_first_not_of(kDigits, j), b.size());
      if (end_a == i || end_b == j) {
        if (a[i] != b[j]) return a[i] < b[j];
        ++i, ++j;
        continue;
      }
      const auto digits = [](std::string_view number) {
        return number.substr(std::min(number.find_first_not_of('0'), number.size()));
      };
      const std::string_view left = digits(a.substr(i, end_a - i));
      const std::string_view right = digits(b.substr(j, end_b - j));
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      i = end_a, j = end_b;
    }
    if (i == a.size() && j == b.size()) return a < b;  // equal but for zeros
    return i == a.size();
  }
};

/// "{0,2,4-6}"
inline std::string in_braces(const std::set<uint64_t>& numbers) {
  std::string out = "{";
  for (auto at = numbers.begin(); at != numbers.end();) {
    const uint64_t first = *at;
    uint64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    if (out.size() > 1) out += ',';
    out += std::to_string(first);
    if (last != first) out += (last == first + 1 ? ',' : '-') + std::to_string(last);
  }
  return out + '}';
}

}  // namespace gpumemprof
