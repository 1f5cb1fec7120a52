#include "report/user_code.h"

#include "report/words.h"

namespace gpumemprof {
namespace {

std::string describe(const Frame& frame, std::string_view function, std::string file) {
  if (frame.line != 0) file += ':' + std::to_string(frame.line);
  if (!file.empty() && !function.empty()) file += ' ';
  return printable(file.append(function));
}

/// A C++ function without its parameters and where it returns, of a length to read.
std::string_view without_parameters(std::string_view function) {
  if (function.ends_with(" const")) function.remove_suffix(6);
  if (!function.ends_with(')')) return function;
  size_t open = function.size();
  for (int depth = 0; open-- > 0;) {
    depth += function[open] == ')' ? 1 : function[open] == '(' ? -1 : 0;
    if (depth == 0) break;
  }
  return open == 0 || open > function.size() ? function : function.substr(0, open);
}

}  // namespace

std::string headline_text(const Tables& tables, uint32_t node, std::string_view folder) {
  if (node == 0) return std::string(kNoStack);
  const Frame& frame = tables.stacks.frame_of(node);
  const std::string_view file = tables.strings.get(frame.file);
  const std::string_view function = tables.strings.get(frame.function);
  const bool is_native = file.empty() || is_native_source(file);
  if (!is_native) return describe(frame, function, short_path(file, folder));
  return describe(frame, without_parameters(function),
                  file == "??" ? "" : short_path(file, folder));
}

std::string frame_text(const Tables& tables, uint32_t node) {
  const Frame& frame = tables.stacks.frame_of(node);
  return describe(frame, tables.strings.get(frame.function),
                  std::string(tables.strings.get(frame.file)));
}

std::string viewer_frame(const Tables& tables, const Frame& frame) {
  std::string_view file = tables.strings.get(frame.file);
  file.remove_prefix(file.find_last_of("/\\") + 1);  // npos + 1 is 0
  std::string text(tables.strings.get(frame.function));
  if (text.empty()) text = "?";
  if (!file.empty()) {
    (text += " (") += file;
    if (frame.line != 0) text += ':' + std::to_string(frame.line);
    text += ')';
  }
  return printable(text);
}

}  // namespace gpumemprof
