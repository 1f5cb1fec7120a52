#include "host_blocks/next.h"

#include <string.h>

#include "host_blocks/blocks.h"
#include "probe/dynamic.h"

// Strong, so that the program's own malloc, if it has one, is what is found here.
extern "C" void* malloc(size_t);
extern "C" void* mmap(void*, size_t, int, int, int, off_t);
// glibc's own, where there is no dlsym to ask (before 2.34, in a program without plugins).
#pragma weak __libc_malloc
extern "C" void* __libc_malloc(size_t);

namespace gpumemprof::host_blocks {
namespace {

/// For calls that the look-up itself makes; never given back.
alignas(16) char g_start[16384];
size_t g_start_used;
bool g_is_looking;

void* take_at_start(size_t size) {
  const size_t rounded = (size + 15) & ~size_t{15};
  if (size > sizeof(g_start) || g_start_used + rounded > sizeof(g_start)) return nullptr;
  void* p = g_start + g_start_used;
  g_start_used += rounded;
  return p;
}

bool is_of_start(const void* p) { return p >= g_start && p < g_start + sizeof(g_start); }

template <class F>
void look(F* function, F first, const char* name) {
  void* found = dlsym ? dlsym(RTLD_NEXT, name) : nullptr;
  *function = found ? reinterpret_cast<F>(found) : first;
}

/// The first call of a process is made by the loader or a constructor, while there is one thread.
void find_all();

void* first_malloc(size_t size) {
  if (g_is_looking) return take_at_start(size);
  find_all();
  return g_next.malloc(size);
}
void* first_calloc(size_t n, size_t size) {
  if (g_is_looking) return take_at_start(n * size);  // dlerror's, of a few bytes
  find_all();
  return g_next.calloc(n, size);
}
void* first_realloc(void* p, size_t size) {
  if (g_is_looking) return p ? nullptr : take_at_start(size);
  find_all();
  return g_next.realloc(p, size);
}
void first_free(void* p) {
  if (g_is_looking) return;
  find_all();
  g_next.free(p);
}
int first_posix_memalign(void** out, size_t alignment, size_t size) {
  find_all();
  return g_next.posix_memalign(out, alignment, size);
}
void* first_aligned_alloc(size_t alignment, size_t size) {
  find_all();
  return g_next.aligned_alloc(alignment, size);
}
void* first_memalign(size_t alignment, size_t size) {
  find_all();
  return g_next.memalign(alignment, size);
}
void* first_mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  find_all();
  return g_next.mmap(at, size, protection, flags, fd, offset);
}
int first_munmap(void* at, size_t size) {
  find_all();
  return g_next.munmap(at, size);
}
void* first_mremap(void* at, size_t old_size, size_t size, int flags, void* to) {
  find_all();
  return g_next.mremap(at, old_size, size, flags, to);
}

void (*g_next_free)(void*);
void* (*g_next_realloc)(void*, size_t);

/// Only where the look-up allocated; else the real ones are called.
void free_but_start(void* p) {
  if (!is_of_start(p)) g_next_free(p);
}
void* realloc_but_start(void* p, size_t size) {
  if (!is_of_start(p)) return g_next_realloc(p, size);
  void* moved = g_next.malloc(size);
  const size_t most = static_cast<size_t>(g_start + sizeof(g_start) - static_cast<char*>(p));
  if (moved) memcpy(moved, p, size < most ? size : most);
  return moved;
}

void find_all() {
  g_is_looking = true;
  Next found{};
  look(&found.malloc, g_next.malloc, "malloc");
  look(&found.calloc, g_next.calloc, "calloc");
  look(&found.realloc, g_next.realloc, "realloc");
  look(&found.free, g_next.free, "free");
  look(&found.posix_memalign, g_next.posix_memalign, "posix_memalign");
  look(&found.aligned_alloc, g_next.aligned_alloc, "aligned_alloc");
  look(&found.memalign, g_next.memalign, "memalign");
  look(&found.mmap, g_next.mmap, "mmap");
  look(&found.munmap, g_next.munmap, "munmap");
  look(&found.mremap, g_next.mremap, "mremap");
  if (g_start_used > 0) {
    g_next_free = found.free, g_next_realloc = found.realloc;
    found.free = free_but_start, found.realloc = realloc_but_start;
  }
  g_next = found;
  g_is_looking = false;
}

struct Owner {
  const void* address;
  uintptr_t begin, end;
  char name[256];
};

int find_owner(dl_phdr_info* info, size_t, void* context) {
  auto* owner = static_cast<Owner*>(context);
  uintptr_t begin = ~uintptr_t{0}, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t at = info->dlpi_addr + segment.p_vaddr;
    if (at < begin) begin = at;
    if (at + segment.p_memsz > end) end = at + segment.p_memsz;
  }
  const auto address = reinterpret_cast<uintptr_t>(owner->address);
  if (address < begin || address >= end) return 0;
  owner->begin = begin, owner->end = end;
  const char* path = info->dlpi_name ? info->dlpi_name : "";
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  strncpy(owner->name, *name ? name : "the program itself", sizeof(owner->name) - 1);
  return 1;
}

/// Of the object that contains `address`.
bool find(const void* address, Owner* owner) {
  owner->address = address;
  return dl_iterate_phdr(find_owner, owner) != 0;
}

void tell(void (*told)(const void*, const void*), const Owner& owner) {
  told(reinterpret_cast<const void*>(owner.begin), reinterpret_cast<const void*>(owner.end));
}

/// Whose malloc the program calls: one that comes before ours, or one that ours leads to.
__attribute__((constructor)) void find_whose_malloc() {
  static Owner own, other;
  const probe::HostLink* link = host_link();
  if (!link) return;
  if (find(reinterpret_cast<const void*>(gpumemprof_host_malloc), &own)) tell(link->here, own);
  void* (*called)(size_t) = malloc;
  if (g_next.malloc == first_malloc) find_all();
  const bool is_ours = called == gpumemprof_host_malloc;
  // Ours leads to the C library's: what it maps for itself does not come here.
  if (is_ours && (!__libc_malloc || g_next.malloc == __libc_malloc)) return;
  if (!find(reinterpret_cast<const void*>(is_ours ? g_next.malloc : called), &other)) return;
  tell(link->leave, other);
  void* (*maps)(void*, size_t, int, int, int, off_t) = mmap;
  const auto mmap_at = reinterpret_cast<uintptr_t>(maps);
  if (!is_ours) link->unseen(other.name, mmap_at >= other.begin && mmap_at < other.end);
}

}  // namespace

constinit Next g_next = {first_malloc,        first_calloc,   first_realloc, first_free,
                         first_posix_memalign, first_aligned_alloc, first_memalign, first_mmap,
                         first_munmap,        first_mremap};

}  // namespace gpumemprof::host_blocks
