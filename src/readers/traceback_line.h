// The line of the program that raised an error, where Python's traceback stands above its message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// An exception that was raised in another process or thread, as PyTorch tells it where it waited.

struct RaisedAgain {
  std::string where;               ///< "DataLoader worker process 1"
  std::vector<std::string> stack;  ///< there, innermost first: "FILE:LINE FUNCTION"
  std::string message;             ///< "RuntimeError: …", its last line
};

/// Reads what torch._utils.ExceptionWrapper writes: "Caught KIND in WHERE.", a traceback, the
/// error. Absent where `message` is something else. Time O(message).
std::optional<RaisedAgain> raised_again(std::string_view message);

}  // namespace gpumemprof
