// How texts are matched with the user's input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace gpumemprof {

inline constexpr size_t kMostSearchedBytes = 4096;  // of one frame or name

inline char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// Ignoring the case of ASCII letters.
inline bool contains(std::string_view text, std::string_view part) {
  text = text.substr(0, kMostSearchedBytes);
  const auto found = std::ranges::search(text, part, {}, lower_letter, lower_letter);
  return part.empty() || !found.empty();
}

inline bool begins(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && contains(text.substr(0, part.size()), part);
}

}  // namespace gpumemprof
