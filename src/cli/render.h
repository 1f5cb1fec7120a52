// How a report is to be written, where several commands offer the same choice.
#pragma once

#include <string>
#include <string_view>

namespace gpumemprof {

/// "text", "json" or "html": as --format says, else as the name of --output ends, else text.
std::string report_format(const std::string& format, std::string_view output);

/// `choice` is --color: "always", "never", or "auto": a terminal, and NO_COLOR is not set.
bool report_color(const std::string& choice, const std::string& output);

}  // namespace gpumemprof
