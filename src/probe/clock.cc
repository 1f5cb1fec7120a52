#include "probe/clock.h"

#include <string.h>

#include "probe/hot.h"
#include "probe/line_clock.h"
#include "probe/recorder.h"
#include "probe/sys.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <x86intrin.h>
#endif

namespace gpumemprof::probe {
namespace {

struct Processor {
  static uint64_t kernel_ns() { return monotonic_ns(); }
  static uint32_t owner() { return incarnation() | 1; }

#if defined(__x86_64__)
  static uint64_t counter() { return __rdtsc(); }
  static void wait_for_loads() { _mm_lfence(); }

  /// The counter is invariant and the kernel derives its clock from it in this process, too: a
  /// process that may not execute rdtsc cannot use the vDSO clock either.
  static bool is_trusted() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (g_sandboxed || !__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8)) return false;
    char name[8] = {};
    constexpr char kSource[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    return read_file(kSource, name, sizeof(name)) >= 4 && memcmp(name, "tsc\n", 4) == 0;
  }
#else
  static uint64_t counter() { return 0; }
  static void wait_for_loads() {}
  static bool is_trusted() { return false; }
#endif
};

HOT_LINES constinit LineClock<Processor> g_clock;

}  // namespace

HOT uint64_t event_time_ns(const void* writer) { return g_clock.time_ns(writer); }
bool is_read_off_the_counter() { return g_clock.has_line(); }

}  // namespace gpumemprof::probe
