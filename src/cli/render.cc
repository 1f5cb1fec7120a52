#include "cli/options.h"

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

void add_format_option(CLI::App* command, std::string* format, bool has_html) {
  const std::string formats = has_html ? "text, json or html" : "text or json";
  command
      ->add_option("--format", *format, formats + " (default: by --output's extension, else text)")
      ->check(has_html ? CLI::IsMember({"text", "txt", "json", "html"})
                       : CLI::IsMember({"text", "txt", "json"}));
}

void add_text_or_json_option(CLI::App* command, std::string* format) {
  command->add_option("--format", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void add_output_option(CLI::App* command, std::string* output) {
  add_value(command, "-o,--output", "FILE", *output,
            "write to this file instead of standard output");
}

void add_color_option(CLI::App* command, std::string* color) {
  command->add_option("--color", *color, "auto, always or never; NO_COLOR is respected")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

}  // namespace gpumemprof
