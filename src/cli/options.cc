#include "cli/options.h"

#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "estimate/prices.h"

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

void add_camera_folders(CLI::App* command, CameraOptions* options) {
  add_value(command, "folders", "FOLDER", options->folders,
            "also follow recordings in these folders, such as those of other containers")
      ->check(CLI::ExistingDirectory);
}

void add_camera_thresholds(CLI::App* command, CameraOptions* options) {
  add_defaulted(command, "--warning-threshold", "%", options->alerts.warning_percent,
                "alert when more than this percentage of a memory is in use")
      ->check(CLI::Range(0.1, 100.0));
  add_defaulted(command, "--critical-threshold", "%", options->alerts.critical_percent,
                "critical alert above this percentage")
      ->check(CLI::Range(0.1, 100.0));
}

namespace {

constexpr size_t kMostListBytes = 1u << 20;

}  // namespace

void add_cost_options(CLI::App* command, CostArguments* arguments) {
  add_value(command, "--price", "PRICE", arguments->price,
            "price of the board per hour, such as 2.49/h or \"2.49 EUR/h\": shows what the "
            "waste costs per day");
  add_value(command, "--prices", "FILE", arguments->prices,
            "a price list of boards, to name the cheapest that holds the peak");
}

Result<std::optional<uint64_t>> read_capacity(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bytes = parse_capacity(text);
  if (!bytes) return fail(ErrorCode::kUsage, "--capacity: " + bytes.error().message);
  return *bytes;
}

int read_cost_options(const CostArguments& arguments, const std::string& capacity,
                      std::optional<CostOptions>* options) {
  options->reset();
  if (!arguments.is_given()) return kExitOk;
  CostOptions read;
  if (!arguments.price.empty()) {
    auto price = parse_price(arguments.price);
    if (!price) return report_error("--price", price.error());
    read.price = std::move(*price);
  }
  if (!arguments.prices.empty()) {
    auto text = read_small_file(arguments.prices, kMostListBytes);
    if (!text) return report_error(arguments.prices, text.error());
    auto boards = parse_prices(*text);
    if (!boards) return report_error(arguments.prices, boards.error());
    read.boards = std::move(*boards);
  }
  const auto bytes = read_capacity(capacity);
  if (!bytes) return report_error("", bytes.error());
  read.capacity_bytes = *bytes;
  *options = std::move(read);
  return kExitOk;
}

}  // namespace gpumemprof
