// An exception that was raised in another process or thread, as PyTorch tells it where it waited.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

struct RaisedAgain {
  std::string where;               ///< "DataLoader worker process 1"
  std::vector<std::string> stack;  ///< there, innermost first: "FILE:LINE FUNCTION"
  std::string message;             ///< "RuntimeError: …", its last line
};

/// Reads what torch._utils.ExceptionWrapper writes: "Caught KIND in WHERE.", a traceback, the
/// error. Absent where `message` is something else. Time O(message).
std::optional<RaisedAgain> raised_again(std::string_view message);

}  // namespace gpumemprof
