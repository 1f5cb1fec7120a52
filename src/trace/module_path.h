// Paths of modules as reports write several equal ones.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gpumemprof {

/// "blocks.*.attn" for "blocks.3.attn"; unchanged if no part is a number.
inline std::string without_numbers(std::string_view name) {
  std::string out;
  for (size_t from = 0; from <= name.size();) {
    const size_t end = std::min(name.find('.', from), name.size());
    const std::string_view part = name.substr(from, end - from);
    const bool is_number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (from != 0) out += '.';
    out += is_number ? "*" : part;
    from = end + 1;
  }
  return out;
}

}  // namespace gpumemprof
