#include <cstdio>

#include "cli/commands.h"
#include "report/words.h"

namespace gpumemprof {

int report_error(const std::string& subject, const Error& error) {
  std::string name = subject;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::string text = "gpumemprof: ";
  // Readers of several files name the file themselves.
  if (!name.empty() && !error.message.starts_with(name + ": ")) text += printable(subject) + ": ";
  text += printable(error.message);
  if (error.offset) text += " (at byte " + std::to_string(*error.offset) + ')';
  std::fprintf(stderr, "%s\n", text.c_str());
  return error.code == ErrorCode::kSystem ? kExitToolFailed : kExitBadInput;
}

}  // namespace gpumemprof
