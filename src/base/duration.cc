#include "base/duration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gpumemprof {
namespace {

std::string tenths(double value, const char* unit) {
  char text[48];
  const int length = std::snprintf(text, sizeof text, "%.1f", value);
  std::string out(text, static_cast<size_t>(length));
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out + ' ' + unit;
}

}  // namespace

std::string format_duration(uint64_t duration_ns) {
  const double seconds = static_cast<double>(duration_ns) * 1e-9;
  const uint64_t whole = duration_ns / 1'000'000'000;
  char text[64];
  if (duration_ns < 1000) return std::to_string(duration_ns) + " ns";
  if (duration_ns < 1'000'000) return tenths(seconds * 1e6, "µs");
  if (duration_ns < 1'000'000'000) return tenths(seconds * 1e3, "ms");
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%u min %02u s", static_cast<unsigned>(whole / 60),
                  static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu h %02u min",
                  static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned>(whole / 60 % 60));
  }
  return text;
}

std::string format_seconds(double seconds) {
  constexpr double kMost = 9e9;  // in nanoseconds it fits llround()
  if (!(seconds > 0)) return format_duration(0);
  return format_duration(static_cast<uint64_t>(std::llround(std::min(seconds, kMost) * 1e9)));
}

}  // namespace gpumemprof
