#include "report/user_code.h"

#include "report/words.h"

namespace gpumemprof {
namespace {

const Frame& frame_of(const Tables& tables, uint32_t node) {
  return tables.stacks.frame(tables.stacks.node(node).frame);
}

std::string describe(const Tables& tables, uint32_t node, std::string file) {
  const Frame& frame = frame_of(tables, node);
  if (frame.line != 0) file += ':' + std::to_string(frame.line);
  const std::string_view function = tables.strings.get(frame.function);
  if (!file.empty() && !function.empty()) file += ' ';
  return printable(file.append(function));
}

}  // namespace

std::string headline_text(const Tables& tables, uint32_t node, std::string_view folder) {
  if (node == 0) return std::string(kNoStack);
  return describe(tables, node,
                  short_path(tables.strings.get(frame_of(tables, node).file), folder));
}

std::string frame_text(const Tables& tables, uint32_t node) {
  return describe(tables, node, std::string(tables.strings.get(frame_of(tables, node).file)));
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
