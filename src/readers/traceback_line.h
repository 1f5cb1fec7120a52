// The line of the program that raised an error, where Python's traceback stands above its message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpumemprof {

/// Texts are as printed: nothing says that they are harmless.
struct TracebackLine {
  std::string file;  ///< empty: none is known
  uint64_t line = 0;
  std::string function;
  std::string code;  ///< empty where Python did not print it
};

/// `before`: what stands in front of the message, from a line's begin or in the middle of one. The
/// innermost line that is no library's.
TracebackLine traceback_line(std::string_view before);

}  // namespace gpumemprof
