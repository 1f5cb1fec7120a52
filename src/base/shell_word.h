// Text as one word of a POSIX shell's command.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gpumemprof {

/// Whether a shell reads it as the word that it is, without quotes.
inline bool is_plain_shell_word(std::string_view text) {
  constexpr std::string_view kBesideLettersAndDigits = "@%+=:,./_-";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || kBesideLettersAndDigits.contains(c);
  });
}

/// In single quotes where it has to be.
inline std::string shell_word(std::string_view text) {
  if (is_plain_shell_word(text)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

}  // namespace gpumemprof
