// How a command declares an option that takes a value. Help shows `type` for the value.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "estimate/cost.h"
#include "picture/camera.h"

namespace gpumemprof {

/// The type of one value of an option that may be absent, or be given several times.
template <class T>
struct OneValue {
  using Type = T;
};
template <class T>
struct OneValue<std::optional<T>> : OneValue<T> {};
template <class T>
struct OneValue<std::vector<T>> : OneValue<T> {};

/// help.h names the bounds behind it. The parser itself takes "-1" for the largest number.
template <class Number>
std::string why_no_number(const std::string& text) {
  Number number{};
  bool is_number = CLI::detail::lexical_cast(text, number);
  if constexpr (std::is_unsigned_v<Number>) is_number = is_number && text.front() != '-';
  if constexpr (std::is_floating_point_v<Number>) is_number = is_number && std::isfinite(number);
  if (is_number) return "";
  const char* const what = std::is_integral_v<Number> ? "a whole number" : "a number";
  return '\'' + text + "' is not " + what;
}

template <class T>
CLI::Option* add_value(CLI::App* command, const std::string& names, const std::string& type,
                       T& value, const std::string& text) {
  CLI::Option* option = command->add_option(names, value, text)->type_name(type);
  using Number = typename OneValue<T>::Type;
  if constexpr (std::is_arithmetic_v<Number>)
    option->check(CLI::Validator([](std::string& one) { return why_no_number<Number>(one); },
                                 std::is_unsigned_v<Number> ? "UNSIGNED" : ""));
  return option;
}

/// Help shows the default too: what `value` holds now.
template <class T>
CLI::Option* add_defaulted(CLI::App* command, const std::string& names, const std::string& type,
                           T& value, const std::string& text) {
  return add_value(command, names, type, value, text)->capture_default_str();
}

/// May be given several times, each time with one value: else a following "--" would be eaten.
template <class T>
CLI::Option* add_repeatable(CLI::App* command, const std::string& names, const std::string& type,
                            T& values, const std::string& text) {
  return add_value(command, names, type, values, text)
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

// Options shared by `top` and `serve`: folders and thresholds.

/// FOLDER… ; `options` lives as long as the parser.
void add_camera_folders(CLI::App* command, CameraOptions* options);
/// --warning-threshold and --critical-threshold.
void add_camera_thresholds(CLI::App* command, CameraOptions* options);

// The options that say what boards cost.

struct CostArguments {
  std::string price, prices;
  bool is_given() const { return !price.empty() || !prices.empty(); }
};

void add_cost_options(CLI::App* command, CostArguments* arguments);

/// --capacity of a device: absent where it is not given. Errors: kUsage, with the option's name.
Result<std::optional<uint64_t>> read_capacity(const std::string& text);

/// Nothing in `options` where no price was given. The exit code; what is wrong is reported.
int read_cost_options(const CostArguments& arguments, const std::string& capacity,
                      std::optional<CostOptions>* options);

// How a report is to be written, where several commands offer the same choice.

/// "text", "json" or "html": as --format says, else as the name of --output ends, else text.
std::string report_format(const std::string& format, std::string_view output);

/// `choice` is --color: "always", "never", or "auto": a terminal, and NO_COLOR is not set.
bool report_color(const std::string& choice, const std::string& output);

// The options of those choices.
/// Text and JSON, and HTML where `has_html`; where none is named --output's extension chooses.
void add_format_option(CLI::App* command, std::string* format, bool has_html);
void add_text_or_json_option(CLI::App* command, std::string* format);  ///< whatever --output is
void add_output_option(CLI::App* command, std::string* output);
void add_color_option(CLI::App* command, std::string* color);

}  // namespace gpumemprof
