// A clock that is read off a counter, along lines that are laid by another clock.
//
//   time_ns │          ╱  the line in force: its time_ns + (counter − its counter) × scale
//           │      ╱╱
//           │ ╱╱╱     └ tuning, once a second: the kernel's clock is read, and a new line begins
//           there, └────────── counter   never before the end of the old one
//
// Times never go back by more than the 50 ns that two lines may differ by within 10 µs, and not at
// all between threads where one knows of what the other did. Whoever tunes is waited for by nobody:
// the others keep to the old line. Where the counter turns out to be none, or was never one, every
// event asks the kernel.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// No scale: every event queries the kernel's clock, and the counter is not read.
struct ClockLine {
  uint64_t counter;
  uint64_t time_ns;
  uint64_t scale;  // ns a tick × 2^32
};

/// The kernel's clock and the counter, read together.
struct ClockPair {
  uint64_t counter;
  uint64_t time_ns;
};

/// Ticks after which a line is replaced: 0.4 to 2 s.
inline constexpr uint64_t kMostTicks = 0x8000'0000;
/// Ticks after which no event's time is on a line: a thread that arrives during tuning keeps to the
/// old line.
inline constexpr uint64_t kEndTicks = 2 * kMostTicks;
/// Ticks in which a new line must be in force, under 33 µs: until then it hardly differs from the
/// old one.
inline constexpr uint64_t kMostLateTicks = 0x8000;
/// How far the kernel's clock may be behind at the end of a line: 0.1 % of the longest, twice what
/// adjtimex slews.
inline constexpr uint64_t kMostBehindNs = 5'000'000;
inline constexpr uint64_t kBackWithinNs = 1'000'000'000;
inline constexpr uint64_t kLeastLearningNs = 50'000'000;
/// Between the two readings of the kernel's clock around a counter: 6 ppm of the shortest learning
/// time.
inline constexpr uint64_t kMostApartNs = 300;
inline constexpr uint32_t kMostFailures = 64;

/// A line's time at a counter after its own.
inline uint64_t time_on(const ClockLine& line, uint64_t counter) {
  const auto ticks = static_cast<unsigned __int128>(counter - line.counter);
  return line.time_ns + static_cast<uint64_t>(ticks * line.scale >> 32);
}

/// The latest time that an event can have on a line, if the counter is now at `counter`.
uint64_t latest_on(const ClockLine& line, uint64_t counter);

/// ns per tick × 2^32 between two pairs; 0 if that is not a counter of 1 to 16 GHz, or it went
/// backwards.
uint64_t scale_between(const ClockPair& from, const ClockPair& to);

/// True if two scales differ by at most a thousandth, twice the rate at which a clock is slewed
/// (adjtimex). Otherwise the counter or the kernel's clock stopped while the machine slept or
/// moved.
bool is_same_scale(uint64_t a, uint64_t b);

/// The line that follows `line`. It begins at the kernel's clock, or if that is behind by at most
/// kMostBehindNs, at the latest time on the old line, with a smaller slope. No scale if the
/// kernel's clock is behind by more.
ClockLine next_line(const ClockLine& line, const ClockPair& now, uint64_t scale);

/// `Machine` has static functions: counter(); wait_for_loads(), before which no later counter() is
/// read; kernel_ns(), which never goes back; is_trusted(), whether there is a counter that runs
/// evenly and alike on every processor; and owner(), a number other than 0 that a forked child has
/// another of.
template <class Machine>
class LineClock {
 public:
  /// The time of an event of `writer`, which stands for the calling thread. Signal-safe.
  uint64_t time_ns(const void* writer) {
    const void* only = __atomic_load_n(&only_writer_, __ATOMIC_RELAXED);
    if (__builtin_expect(only != writer && only != this, 0)) claim(writer);
    const uint64_t turn = __atomic_load_n(&turn_, __ATOMIC_ACQUIRE);
    const ClockLine line = read(lines_[turn % 2]);
    if (__builtin_expect(line.scale == 0, 0)) return slow_time_ns();
    if (only != writer) Machine::wait_for_loads();
    const uint64_t ticks = Machine::counter() - line.counter;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const bool is_whole = __atomic_load_n(&turn_, __ATOMIC_RELAXED) == turn;
    if (__builtin_expect(ticks >= kMostTicks || !is_whole, 0)) return slow_time_ns();
    return line.time_ns + (ticks * line.scale >> 32);
  }

  /// False while every event asks the kernel.
  bool has_line() const { return current_line().scale != 0; }
  /// True where it always will.
  bool is_refused() const { return __atomic_load_n(&refused_, __ATOMIC_ACQUIRE); }

 private:
  /// A line that may be written meanwhile; then the turn tells, and it is not used.
  static ClockLine read(const ClockLine& from) {
    return {__atomic_load_n(&from.counter, __ATOMIC_RELAXED),
            __atomic_load_n(&from.time_ns, __ATOMIC_RELAXED),
            __atomic_load_n(&from.scale, __ATOMIC_RELAXED)};
  }

  ClockLine current_line() const {
    while (true) {
      const uint64_t turn = __atomic_load_n(&turn_, __ATOMIC_ACQUIRE);
      const ClockLine line = read(lines_[turn % 2]);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      if (__atomic_load_n(&turn_, __ATOMIC_RELAXED) == turn) return line;
    }
  }

  __attribute__((noinline, cold)) void claim(const void* writer) {
    const void* nobody = nullptr;
    if (!__atomic_compare_exchange_n(&only_writer_, &nobody, writer, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      __atomic_store_n(&only_writer_, this, __ATOMIC_RELEASE);
  }

  /// Before the first line, about once a second, and always where the counter is not trusted.
  __attribute__((noinline, cold)) uint64_t slow_time_ns() {
    if (!is_refused() && hold()) {
      tune();
      __atomic_store_n(&held_by_, 0, __ATOMIC_RELEASE);
    }
    const ClockLine line = current_line();
    uint64_t floor = 0;
    if (line.scale) {
      const uint64_t now_counter = Machine::counter(), ticks = now_counter - line.counter;
      // While another thread tunes, by the line before, unless that is one of long ago.
      if (ticks < kEndTicks) return time_on(line, now_counter);
      floor = ticks >> 63 ? line.time_ns : latest_on(line, now_counter);
    }
    const uint64_t now = Machine::kernel_ns();
    if (is_refused()) {
      // Half as fast as the kernel's clock until that has come up: events keep their order.
      const uint64_t at = __atomic_load_n(&refused_at_ns_, __ATOMIC_RELAXED);
      floor = __atomic_load_n(&floor_ns_, __ATOMIC_RELAXED) + (now > at ? now - at : 0) / 2;
    }
    return now < floor ? floor : now;
  }

  /// False while another thread tunes. In a child forked meanwhile that thread does not exist, and
  /// the clock starts afresh.
  bool hold() {
    const uint32_t own = Machine::owner();
    uint32_t held = __atomic_load_n(&held_by_, __ATOMIC_RELAXED);
    if (held == own || !__atomic_compare_exchange_n(&held_by_, &held, own, false, __ATOMIC_ACQUIRE,
                                                    __ATOMIC_RELAXED))
      return false;
    if (held != 0) pair_ = {0, 0}, scale_ = 0;
    return true;
  }

  /// By who holds it. The first scale is believed when a second one is the same.
  void tune() {
    if (!asked_) {
      asked_ = 1;
      if (!Machine::is_trusted()) return refuse({0, 0, 0}, 0);
    }
    const ClockLine line = lines_[turn_ % 2];
    const uint64_t kernel_ns = Machine::kernel_ns();
    if (kernel_ns - pair_.time_ns < kLeastLearningNs) {
      // Another thread has tuned just now, or it is too early to learn a scale. A line is longer
      // than that.
      const uint64_t ticks = line.scale ? Machine::counter() - line.counter : 0;
      if (ticks >= kEndTicks && ticks >> 63 == 0) refuse(line, kernel_ns);
      return;
    }
    const ClockPair now = take_pair();
    if (now.time_ns == 0) {
      if (++failures_ >= kMostFailures) refuse(line, kernel_ns);
      return;
    }
    failures_ = 0;
    const uint64_t scale = pair_.time_ns ? scale_between(pair_, now) : 0;
    if (pair_.time_ns == 0 || (scale_ == 0 && scale != 0)) {
      pair_ = now, scale_ = scale;
      return;
    }
    const ClockLine next = next_line(line, now, scale);
    if (!is_same_scale(scale_, scale) || next.scale == 0) return refuse(line, now.time_ns);
    if (put_in_force(next, now.counter)) pair_ = now, scale_ = scale;
  }

  /// The closest of three; zeros where the thread was interrupted in each. The time is the later of
  /// the two around the counter: a line begun here is never behind an event that had the kernel's
  /// time.
  static ClockPair take_pair() {
    ClockPair best = {0, 0};
    uint64_t closest = kMostApartNs;
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = Machine::kernel_ns(), ticks = Machine::counter(),
                     after = Machine::kernel_ns();
      if (after - before >= closest) continue;
      closest = after - before;
      best = {ticks, after};
    }
    return best;
  }

  /// False where that took long: events went on along the old line. The next one tunes again.
  bool put_in_force(const ClockLine& line, uint64_t since) {
    ClockLine& to = lines_[(turn_ + 1) % 2];
    __atomic_store_n(&to.counter, line.counter, __ATOMIC_RELAXED);
    __atomic_store_n(&to.time_ns, line.time_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&to.scale, line.scale, __ATOMIC_RELAXED);
    if (line.scale && Machine::counter() - since > kMostLateTicks) return false;
    __atomic_store_n(&turn_, turn_ + 1, __ATOMIC_RELEASE);
    return true;
  }

  /// The counter is not to be trusted, or not any more. `line`: that was in force.
  void refuse(const ClockLine& line, uint64_t now_ns) {
    const uint64_t floor = line.scale ? latest_on(line, Machine::counter() + kMostLateTicks) : 0;
    __atomic_store_n(&refused_at_ns_, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&floor_ns_, floor, __ATOMIC_RELAXED);
    __atomic_store_n(&refused_, 1, __ATOMIC_RELEASE);
    put_in_force({0, 0, 0}, 0);
  }

  /// Null, the writer of all events so far, or this clock for good. Whoever sees itself here needs
  /// to wait for nothing: another thread writes `this` before its first event, hence before
  /// anything by which this one could learn of that event; on x86-64 stores become visible in their
  /// order.
  const void* only_writer_;
  /// Counts lines; lines_[turn_ % 2] is in force. The other one is written before the turn, by who
  /// tunes.
  uint64_t turn_;
  ClockLine lines_[2];

  uint32_t held_by_;        // the owner() that tunes, or 0
  uint32_t asked_;          // whether the counter can be trusted was looked up
  uint32_t refused_;        // it cannot
  uint32_t failures_;       // pairs that could not be taken, in a row
  uint64_t floor_ns_;       // the latest time before the refusal
  uint64_t refused_at_ns_;  // by the kernel's clock
  ClockPair pair_;          // the last one
  uint64_t scale_;          // to it from the one before

 public:
  /// All zeros, so that a global clock needs no initialiser.
  constexpr LineClock()
      : only_writer_(nullptr),
        turn_(0),
        lines_{{0, 0, 0}, {0, 0, 0}},
        held_by_(0),
        asked_(0),
        refused_(0),
        failures_(0),
        floor_ns_(0),
        refused_at_ns_(0),
        pair_{0, 0},
        scale_(0) {}
};

}  // namespace gpumemprof::probe
