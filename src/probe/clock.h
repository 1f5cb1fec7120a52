// The time of an event: CLOCK_MONOTONIC, told by the processor's counter where the kernel itself
// trusts it.
//
//   time_ns │           ╱ the line in force: time_ns + (counter − its counter) × scale
//           │       ╱╱     ticks from the last tuning, which is at most about a second old
//           │  ╱╱╱     └ tuning: the kernel's clock is read, and a new line begins where the old
//           one ends, └─────────── counter   as steep as brings it back to the kernel's clock
//           within a second
//
// clock_gettime waits for every load before it, which in a real step costs more than the reading.
// Here only a program that records in several threads waits so: there a free must not get a time
// before that of the allocation whose address it had to load. Which thread was the only one so far
// is known without a lock: see Clock::only_writer.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// The time of an event of `writer`, which stands for the calling thread. Never goes back within a
/// thread, nor between threads where one of them knows of what the other did. Signal-safe; no lock
/// is waited for.
uint64_t event_time_ns(const void* writer);

/// A line of the picture above. No scale: the kernel's clock is asked for every event.
struct ClockLine {
  uint64_t counter;
  uint64_t time_ns;
  uint64_t scale;  // ns a tick × 2^32
};

/// What a line says at a counter after its own.
inline uint64_t time_on(const ClockLine& line, uint64_t counter) {
  const auto ticks = static_cast<unsigned __int128>(counter - line.counter);
  return line.time_ns + static_cast<uint64_t>(ticks * line.scale >> 32);
}

/// The kernel's clock and the counter, read at once.
struct ClockPair {
  uint64_t counter;
  uint64_t time_ns;
};

/// Ticks after which a line is replaced: 0.4 to 2 s.
inline constexpr uint64_t kMostTicks = 0x8000'0000;
/// Ticks after which no event has a time on it: what meets a thread at the tuning keeps to the old
/// line.
inline constexpr uint64_t kEndTicks = 2 * kMostTicks;

/// ns a tick × 2^32 between two pairs; 0 where that is no counter's of 1 to 16 GHz, or it went
/// backwards.
uint64_t scale_between(const ClockPair& from, const ClockPair& to);

/// True where two scales are the same but for how a clock is set (at most 0.05 %, adjtimex): else
/// the counter stood still, or the kernel's clock, while the machine slept or moved.
bool is_same_scale(uint64_t a, uint64_t b);

/// The latest time that an event can have had on a line, where the counter is now at `counter`.
uint64_t latest_on(const ClockLine& line, uint64_t counter);

/// The line that follows `line`: it begins at the kernel's clock, or where that is behind by at
/// most 0.1 ms, at the latest time on the old one, and is less steep then. No scale where the
/// kernel's clock is behind by more.
ClockLine next_line(const ClockLine& line, const ClockPair& now, uint64_t scale);

}  // namespace gpumemprof::probe
