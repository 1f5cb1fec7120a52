#include "probe/line_clock.h"

namespace gpumemprof::probe {

uint64_t scale_between(const ClockPair& from, const ClockPair& to) {
  const uint64_t ticks = to.counter - from.counter, passed_ns = to.time_ns - from.time_ns;
  if (ticks >> 63 || passed_ns >> 63 || passed_ns >= ticks || ticks / 16 > passed_ns) return 0;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(passed_ns) << 32) / ticks);
}

bool is_same_scale(uint64_t a, uint64_t b) {
  const uint64_t difference = a < b ? b - a : a - b;
  return a != 0 && b != 0 && difference <= b / 1000;
}

uint64_t latest_on(const ClockLine& line, uint64_t counter) {
  const uint64_t ticks = counter - line.counter;
  return time_on(line, line.counter + (ticks < kEndTicks ? ticks : kEndTicks));
}

ClockLine next_line(const ClockLine& line, const ClockPair& now, uint64_t scale) {
  const uint64_t end_ns = latest_on(line, now.counter);
  if (end_ns <= now.time_ns) return {now.counter, now.time_ns, scale};
  const uint64_t behind_ns = end_ns - now.time_ns;
  if (behind_ns > kMostBehindNs) return {0, 0, 0};
  const auto less = static_cast<unsigned __int128>(scale) * behind_ns / kBackWithinNs;
  return {now.counter, end_ns, scale - static_cast<uint64_t>(less)};
}

}  // namespace gpumemprof::probe
