// Text of a file in a message of ours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpumemprof {

/// The text in double quotes, for a message of one line: control characters are '?', and of more
/// than `most_bytes` there is the beginning and "…", never half a character. (Not called quoted:
/// std::quoted is found by its argument wherever <iomanip> comes along, as with GCC 13.)
std::string in_quotes(std::string_view text, size_t most_bytes = 40);

}  // namespace gpumemprof
