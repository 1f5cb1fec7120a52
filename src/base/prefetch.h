// What will be read soon.
#pragma once

namespace gpumemprof {

/// Asks for the cache line of `at`, which need not be readable. GCC drops calls of a function that
/// only prefetches, as it has no effect: the empty assembly is one.
inline void prefetch_line(const void* at) {
  __builtin_prefetch(at);
  asm volatile("");
}

}  // namespace gpumemprof
