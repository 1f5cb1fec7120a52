#include <cstdio>
#include <string_view>

#include "base/error_text.h"
#include "cli/commands.h"
#include "report/words.h"

namespace gpumemprof {

namespace {
const char* g_tool_name = "gpumemprof";
}  // namespace

const char* tool_name() { return g_tool_name; }
bool is_tfmemprof() { return std::string_view(g_tool_name) == "tfmemprof"; }
void set_tool_name(const char* name) { g_tool_name = name; }

int report_error(const std::string& subject, const Error& error) {
  std::string name = subject;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::string text = std::string(tool_name()) + ": ";
  // Readers of several files name the file themselves.
  if (!name.empty() && !error.message.starts_with(name + ": ")) text += printable(subject) + ": ";
  text += printable(text_of(error));
  std::fprintf(stderr, "%s\n", text.c_str());
  return error.code == ErrorCode::kSystem ? kExitToolFailed : kExitBadInput;
}

}  // namespace gpumemprof
