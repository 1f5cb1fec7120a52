// The functions that the program would have called without this library: those of the C library, or
// of an allocator that is linked to the program.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "probe/host_link.h"

#define HOOK extern "C" __attribute__((visibility("default")))

namespace gpumemprof::host_blocks {

/// Until the first call they lead to functions that look the real ones up, so no call needs to ask.
struct Next {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, void*);
};
extern Next g_next;

/// The probe's functions; null if no probe is loaded.
inline const probe::HostLink* host_link() {
  return gpumemprof_host_link ? gpumemprof_host_link(probe::kHostLinkVersion) : nullptr;
}

}  // namespace gpumemprof::host_blocks
