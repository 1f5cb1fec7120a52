// Durations as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace gpumemprof {

/// "3.214 s", "12.5 ms", "1 ms", "2 min 05 s", "1 h 02 min".
std::string format_duration(uint64_t duration_ns);
/// The same of seconds; a negative number or NaN reads as 0.
std::string format_seconds(double seconds);

}  // namespace gpumemprof
