// mmap, munmap and mremap. Not recorded: maps that nobody may touch (PROT_NONE: addresses, no
// memory), and those below 64 KiB.
#include <stdarg.h>

#include "host_blocks/blocks.h"
#include "host_blocks/next.h"

namespace gpumemprof::host_blocks {
namespace {

using probe::HostLink;
using probe::kHostBlockBytes;

// As in <sys/mman.h>, whose declarations differ from the definitions below.
constexpr int kProtNone = 0, kFixed = 0x10, kAnonymous = 0x20, kMoveTo = 2 /* MREMAP_FIXED */;
constexpr uintptr_t kPageMask = 4095;

bool has_failed(const void* p) { return reinterpret_cast<uintptr_t>(p) == ~uintptr_t{0}; }
bool is_aligned(const void* p) { return (reinterpret_cast<uintptr_t>(p) & kPageMask) == 0; }

/// Before [at, at + size) is unmapped or replaced.
size_t note_unmapped(const HostLink* link, void* at, size_t size, uint32_t* memory) {
  return size != 0 && is_aligned(at) ? link->unmapped(at, size, memory) : 0;
}

}  // namespace
}  // namespace gpumemprof::host_blocks

using namespace gpumemprof::host_blocks;

void* gpumemprof_host_mmap(void* at, size_t size, int protection, int flags, int fd,
                           off_t offset) {
  const HostLink* link = host_link();
  if (!link) return g_next.mmap(at, size, protection, flags, fd, offset);
  uint32_t memory;
  const size_t replaced = flags & kFixed ? note_unmapped(link, at, size, &memory) : 0;
  void* p = g_next.mmap(at, size, protection, flags, fd, offset);
  if (has_failed(p)) {
    if (replaced) link->lost();
    return p;
  }
  if (size >= kHostBlockBytes && protection != kProtNone) {
    link->mapped(p, size, flags & kAnonymous ? -1 : fd, __builtin_return_address(0));
  }
  return p;
}
HOOK __attribute__((alias("gpumemprof_host_mmap"))) void* mmap(void*, size_t, int, int, int, off_t);
HOOK __attribute__((alias("gpumemprof_host_mmap"))) void* mmap64(void*, size_t, int, int, int, off_t);

HOOK int munmap(void* at, size_t size) {
  const HostLink* link = host_link();
  if (!link) return g_next.munmap(at, size);
  uint32_t memory;
  const size_t unmapped = note_unmapped(link, at, size, &memory);
  const int result = g_next.munmap(at, size);
  if (result != 0 && unmapped) link->lost();
  return result;
}

HOOK void* mremap(void* at, size_t old_size, size_t size, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* to = va_arg(arguments, void*);  // read whether it is there or not, as the C library does
  va_end(arguments);
  const HostLink* link = host_link();
  if (!link) return g_next.mremap(at, old_size, size, flags, to);
  uint32_t memory, other;
  const size_t moved = note_unmapped(link, at, old_size, &memory);
  const size_t replaced = flags & kMoveTo ? note_unmapped(link, to, size, &other) : 0;
  void* p = g_next.mremap(at, old_size, size, flags, to);
  const bool has_moved = !has_failed(p);
  if (moved) link->moved(has_moved ? p : at, has_moved ? size : old_size, memory);
  if (replaced && !has_moved) link->lost();
  return p;
}
