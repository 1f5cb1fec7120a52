// A heap in large pages, for a program that fills it with tables from large files and then ends.
#pragma once

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/large_pages.h"

namespace gpumemprof {

/// The first 256 MiB of what malloc() hands out, small pieces and tables that grow alike, come in
/// large pages where the system has them, in one heap for all threads, and as much of LargePages is
/// kept for its next tables. Call it before there are threads. Without such pages, or with less
/// memory than that allowed, all is as before.
inline void use_large_heap() {
  constexpr int kHeapBytes = 256 << 20, kMostPieceBytes = 32 << 20;
  FreedLargePages::get().keep_up_to(kHeapBytes);
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, kMostPieceBytes);
  mallopt(M_TOP_PAD, kHeapBytes);
  const auto begin = reinterpret_cast<uintptr_t>(sbrk(0));
  void* volatile piece = std::malloc(kLargePageBytes);  // what lies behind it comes with it
  std::free(piece);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t first = (begin + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace gpumemprof
