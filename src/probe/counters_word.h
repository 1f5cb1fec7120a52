// Two 64-bit words that change as one: a 128-bit compare-and-exchange. In assembly, because the
// compiler's own uses libatomic, on which a preloaded library must not depend.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

struct alignas(16) Pair {
  uint64_t low, high;
};

/// May be torn: `low` and `high` of different moments. Good enough as the expected value of a
/// compare-and-exchange.
inline Pair glance(const Pair* at) {
  return {__atomic_load_n(&at->low, __ATOMIC_RELAXED),
          __atomic_load_n(&at->high, __ATOMIC_RELAXED)};
}

/// Stores `desired` if *at is *expected, otherwise loads *at into *expected. Sequentially
/// consistent. May fail spuriously where the processor's own may (arm64).
inline bool exchange_pair(Pair* at, Pair* expected, Pair desired) {
#if defined(__x86_64__)
  bool done;
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(done), "+m"(*at), "+a"(expected->low), "+d"(expected->high)
                   : "b"(desired.low), "c"(desired.high)
                   : "memory");
  return done;
#elif defined(__aarch64__)
  uint64_t low, high;
  uint32_t failed;
  __asm__ volatile(
      "ldaxp %[low], %[high], [%[at]]\n"
      "cmp %[low], %[want_low]\n"
      "ccmp %[high], %[want_high], #0, eq\n"
      "mov %w[failed], #1\n"
      "b.ne 1f\n"
      "stlxp %w[failed], %[new_low], %[new_high], [%[at]]\n"
      "1:\n"
      : [low] "=&r"(low), [high] "=&r"(high), [failed] "=&r"(failed)
      : [at] "r"(at), [want_low] "r"(expected->low), [want_high] "r"(expected->high),
        [new_low] "r"(desired.low), [new_high] "r"(desired.high)
      : "cc", "memory");
  *expected = {low, high};
  return failed == 0;
#else
#error "the probe knows x86-64 and arm64"
#endif
}

/// False on the first x86-64 processors (2003 to 2006).
inline bool has_pair_exchange() {
#if defined(__x86_64__)
  uint32_t a = 1, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return c >> 13 & 1;
#else
  return true;
#endif
}

}  // namespace gpumemprof::probe
