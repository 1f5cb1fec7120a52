// System calls without libc: they never change errno, are no cancellation points and need no symbol
// version. Each returns the kernel's result: negative errno on failure.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

namespace gpumemprof::probe {

#if defined(__x86_64__)
inline long sys(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long ret;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret;
}
#elif defined(__aarch64__)
inline long sys(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
#else
#error "the probe knows x86-64 and arm64"
#endif

inline long sys_ptr(const void* p) { return reinterpret_cast<long>(p); }

/// Anonymous zeroed memory, or null.
void* map_private(size_t bytes);
/// The whole file into `buffer`, at most `size` bytes. The number of bytes, or negative errno.
long read_file(const char* path, char* buffer, size_t size);
/// True if a write that ends at `end` would exceed RLIMIT_FSIZE and raise SIGXFSZ.
bool exceeds_file_limit(uint64_t end);
/// CLOCK_MONOTONIC through the vDSO: no system call.
uint64_t monotonic_ns();
uint64_t realtime_ns();

}  // namespace gpumemprof::probe
