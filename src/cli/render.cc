#include "cli/render.h"

#include <unistd.h>

#include <cstdlib>

namespace gpumemprof {

std::string report_format(const std::string& format, std::string_view output) {
  if (format == "txt") return "text";
  if (!format.empty()) return format;
  if (output.ends_with(".json")) return "json";
  return output.ends_with(".html") || output.ends_with(".htm") ? "html" : "text";
}

bool report_color(const std::string& choice, const std::string& output) {
  if (choice != "auto") return choice == "always";
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color) return false;
  const char* terminal = std::getenv("TERM");
  const bool to_stdout = output.empty() || output == "-";
  return to_stdout && isatty(STDOUT_FILENO) == 1 && terminal &&
         std::string_view(terminal) != "dumb";
}

}  // namespace gpumemprof
