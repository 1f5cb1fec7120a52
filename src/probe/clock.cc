#include "probe/clock.h"

#include <string.h>

#include "probe/hot.h"
#include "probe/sys.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <x86intrin.h>
#endif

namespace gpumemprof::probe {
namespace {

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

constexpr uint64_t kLeastLearningNs = 50'000'000;  // pairs are right within 30 ns: under 1 ppm
constexpr uint64_t kMostApartNs = 1'000;
constexpr uint64_t kMostBehindNs = 100'000;
constexpr uint64_t kBackWithinNs = 1'000'000'000;

/// Stands for "more than one thread".
const char kMany = 0;

struct Clock {
  /// Null, the writer of all events so far, or &kMany for good. Whoever sees itself here needs to
  /// wait for nothing: another thread writes kMany before its first event, hence before anything by
  /// which this one could learn of that event, and on x86-64 stores become visible in their order.
  const void* only_writer;
  /// Counts lines; lines[turn % 2] is in force. The other one is written before the turn, by who
  /// holds `tuning`.
  uint64_t turn;
  ClockLine lines[2];
};
alignas(64) HOT_DATA Clock g_clock = {nullptr, 0, {{0, 0, 0}, {0, 0, 0}}};

struct Tuning {
  uint32_t is_held;
  uint32_t asked;     // whether the counter can be trusted was looked up
  uint32_t refused;   // it cannot
  uint64_t floor_ns;  // no event is before this one, where the counter was trusted until then
  ClockPair pair;     // the last one
  uint64_t scale;     // to it from the one before
};
Tuning g_tuning;

#if defined(__x86_64__)

inline uint64_t counter() { return __rdtsc(); }
inline void wait_for_loads() { _mm_lfence(); }

/// The counter runs evenly whatever the processor does, this process may read it, and the kernel
/// tells its own time by it.
bool is_trusted() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8)) return false;
  constexpr int kGetCounterMode = 25, kMayRead = 1;  // PR_GET_TSC, PR_TSC_ENABLE
  int mode = 0;
  if (sys(SYS_prctl, kGetCounterMode, sys_ptr(&mode)) < 0 || mode != kMayRead) return false;
  char name[8] = {};
  constexpr char kSource[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  return read_file(kSource, name, sizeof(name)) >= 4 && memcmp(name, "tsc\n", 4) == 0;
}

#else

inline uint64_t counter() { return 0; }
inline void wait_for_loads() {}
bool is_trusted() { return false; }

#endif

/// The closest of three; zeros where the thread was interrupted in each. The time is the later of
/// the two around the counter: a line begun here is never behind an event that had the kernel's
/// time.
ClockPair take_pair() {
  ClockPair best = {};
  uint64_t closest = kMostApartNs;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = monotonic_ns(), ticks = counter(), after = monotonic_ns();
    if (after - before >= closest) continue;
    closest = after - before;
    best = {ticks, after};
  }
  return best;
}

/// A line that may be written meanwhile; then the turn tells, and it is not used.
inline ClockLine read_line(const ClockLine& from) {
  return {__atomic_load_n(&from.counter, __ATOMIC_RELAXED),
          __atomic_load_n(&from.time_ns, __ATOMIC_RELAXED),
          __atomic_load_n(&from.scale, __ATOMIC_RELAXED)};
}

void put_in_force(const ClockLine& line) {
  const uint64_t turn = g_clock.turn;
  ClockLine& to = g_clock.lines[(turn + 1) % 2];
  __atomic_store_n(&to.counter, line.counter, __ATOMIC_RELAXED);
  __atomic_store_n(&to.time_ns, line.time_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&to.scale, line.scale, __ATOMIC_RELAXED);
  __atomic_store_n(&g_clock.turn, turn + 1, __ATOMIC_RELEASE);
}

/// The counter is not to be trusted, or not any more.
void refuse(uint64_t floor_ns) {
  __atomic_store_n(&g_tuning.floor_ns, floor_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&g_tuning.refused, 1, __ATOMIC_RELEASE);
  put_in_force({0, 0, 0});
}

/// By who holds the tuning. The first scale is believed when a second one is the same.
void tune() {
  if (!g_tuning.asked) {
    g_tuning.asked = 1;
    if (!is_trusted()) return refuse(0);
  }
  // Another thread may have tuned just now, or it is too early to learn a scale.
  if (monotonic_ns() - g_tuning.pair.time_ns < kLeastLearningNs) return;
  const ClockPair now = take_pair(), last = g_tuning.pair;
  if (now.time_ns == 0) return;
  g_tuning.pair = now;
  if (last.time_ns == 0) return;
  const uint64_t before = g_tuning.scale, scale = scale_between(last, now);
  g_tuning.scale = scale;
  if (before == 0 && scale != 0) return;
  const ClockLine line = g_clock.lines[g_clock.turn % 2];
  const ClockLine next = next_line(line, now, scale);
  if (!is_same_scale(before, scale) || next.scale == 0) return refuse(latest_on(line, now.counter));
  put_in_force(next);
}

/// The line in force, whole.
ClockLine current_line() {
  while (true) {
    const uint64_t turn = __atomic_load_n(&g_clock.turn, __ATOMIC_ACQUIRE);
    const ClockLine line = read_line(g_clock.lines[turn % 2]);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&g_clock.turn, __ATOMIC_RELAXED) == turn) return line;
  }
}

/// Before the first line, about once a second, and always where the counter is not trusted.
__attribute__((noinline, cold)) uint64_t slow_time_ns() {
  if (!__atomic_load_n(&g_tuning.refused, __ATOMIC_ACQUIRE) &&
      !__atomic_exchange_n(&g_tuning.is_held, 1, __ATOMIC_ACQUIRE)) {
    tune();
    __atomic_store_n(&g_tuning.is_held, 0, __ATOMIC_RELEASE);
  }
  const ClockLine line = current_line();
  const uint64_t now_counter = counter();
  // While another thread tunes, by the line before, unless that is one of long ago.
  if (line.scale && now_counter - line.counter < kEndTicks) return time_on(line, now_counter);
  const uint64_t now = monotonic_ns(),
                 floor = __atomic_load_n(&g_tuning.floor_ns, __ATOMIC_RELAXED);
  return now < floor ? floor : now;
}

__attribute__((noinline, cold)) void claim(const void* writer) {
  const void* nobody = nullptr;
  if (!__atomic_compare_exchange_n(&g_clock.only_writer, &nobody, writer, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    __atomic_store_n(&g_clock.only_writer, &kMany, __ATOMIC_RELEASE);
}

}  // namespace

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

HOT uint64_t event_time_ns(const void* writer) {
  const void* only = __atomic_load_n(&g_clock.only_writer, __ATOMIC_RELAXED);
  if (UNLIKELY(only != writer)) {
    if (UNLIKELY(only != &kMany)) claim(writer);
    wait_for_loads();
  }
  const uint64_t turn = __atomic_load_n(&g_clock.turn, __ATOMIC_ACQUIRE);
  const ClockLine line = read_line(g_clock.lines[turn % 2]);
  const uint64_t ticks = counter() - line.counter;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  const bool is_whole = __atomic_load_n(&g_clock.turn, __ATOMIC_RELAXED) == turn;
  if (UNLIKELY(ticks >= kMostTicks || line.scale == 0 || !is_whole)) return slow_time_ns();
  return line.time_ns + (ticks * line.scale >> 32);
}

}  // namespace gpumemprof::probe
