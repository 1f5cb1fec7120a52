// malloc and its like. Small blocks, nearly all, cost a comparison when they are taken and one load
// when they are freed: a word for each 64 KiB of addresses (modulo 4 GiB) counts the recorded blocks
// that begin there, so where it is 0 the freed block was not recorded.
#include "host_blocks/blocks.h"

#include <errno.h>

#include "host_blocks/next.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CALLER __builtin_return_address(0)

namespace gpumemprof::host_blocks {
namespace {

using probe::HostLink;
using probe::kHostBlockBytes;

constexpr int kGranuleBits = 16;
uint16_t g_recorded[1 << kGranuleBits];

inline uint16_t* granule(const void* p) {
  return &g_recorded[reinterpret_cast<uintptr_t>(p) >> 16 & ((1 << kGranuleBits) - 1)];
}
inline bool may_be_recorded(const void* p) {
  return __atomic_load_n(granule(p), __ATOMIC_RELAXED) != 0;
}

/// errno stays what the real function left there.
__attribute__((noinline)) void* note_taken(void* p, size_t size, const void* caller) {
  const HostLink* link = host_link();
  if (!link) return p;
  if (!p) {
    if (errno == ENOMEM) link->refused(size);
    return p;
  }
  // Before the caller can hand it on.
  if (link->took(p, size, caller)) __atomic_fetch_add(granule(p), 1, __ATOMIC_RELAXED);
  return p;
}

/// Before the real free: afterwards another thread may be given the address.
__attribute__((noinline)) bool note_freed(void* p, size_t* size) {
  const HostLink* link = host_link();
  if (!link || !link->gave(p, size)) return false;
  __atomic_fetch_sub(granule(p), 1, __ATOMIC_RELAXED);
  return true;
}

__attribute__((noinline)) void free_recorded(void* p) {
  size_t size;
  note_freed(p, &size);
  g_next.free(p);
}

/// The old block ends and another begins, also where the address stays. A refusal leaves the old one.
__attribute__((noinline)) void* realloc_noted(void* p, size_t size, const void* caller) {
  size_t old_size = 0;
  const bool was_recorded = p && may_be_recorded(p) && note_freed(p, &old_size);
  void* moved = g_next.realloc(p, size);
  if (!moved && size != 0 && was_recorded) note_taken(p, old_size, caller);
  if (size >= kHostBlockBytes) note_taken(moved, size, caller);
  return moved;
}

}  // namespace
}  // namespace gpumemprof::host_blocks

using namespace gpumemprof::host_blocks;

// Two names of one function: the second cannot be replaced by a program's own malloc.
void* gpumemprof_host_malloc(size_t size) {
  if (UNLIKELY(size >= kHostBlockBytes)) return note_taken(g_next.malloc(size), size, CALLER);
  return g_next.malloc(size);
}
HOOK __attribute__((alias("gpumemprof_host_malloc"))) void* malloc(size_t size);

HOOK void* calloc(size_t n, size_t size) {
  size_t bytes;
  if (UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) return g_next.calloc(n, size);
  if (UNLIKELY(bytes >= kHostBlockBytes)) return note_taken(g_next.calloc(n, size), bytes, CALLER);
  return g_next.calloc(n, size);
}

HOOK void* realloc(void* p, size_t size) {
  if (UNLIKELY(size >= kHostBlockBytes || may_be_recorded(p))) {
    return realloc_noted(p, size, CALLER);
  }
  return g_next.realloc(p, size);
}

HOOK void free(void* p) {
  if (UNLIKELY(may_be_recorded(p))) return free_recorded(p);
  g_next.free(p);
}

HOOK int posix_memalign(void** out, size_t alignment, size_t size) {
  const int error = g_next.posix_memalign(out, alignment, size);
  if (UNLIKELY(size >= kHostBlockBytes)) {
    const HostLink* link = host_link();
    if (error == 0) note_taken(*out, size, CALLER);
    if (error == ENOMEM && link) link->refused(size);
  }
  return error;
}

HOOK void* aligned_alloc(size_t alignment, size_t size) {
  void* p = g_next.aligned_alloc(alignment, size);
  return UNLIKELY(size >= kHostBlockBytes) ? note_taken(p, size, CALLER) : p;
}

HOOK void* memalign(size_t alignment, size_t size) {
  void* p = g_next.memalign(alignment, size);
  return UNLIKELY(size >= kHostBlockBytes) ? note_taken(p, size, CALLER) : p;
}
