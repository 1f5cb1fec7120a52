// How a report is to be written, where several commands offer the same choice.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace gpumemprof {

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
