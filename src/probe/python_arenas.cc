#include "probe/python_arenas.h"

#include <stddef.h>
#include <string.h>

#include "probe/attach.h"

namespace gpumemprof::probe {
namespace {

/// PyObjectArenaAllocator, as it is since 3.4.
struct ArenaAllocator {
  void* context;
  void* (*alloc)(void* context, size_t size_bytes);
  void (*free)(void* context, void* arena, size_t size_bytes);
};

}  // namespace
}  // namespace gpumemprof::probe

// Python's. Weak: null where it is not loaded with the program. dlsym() would leave an error that the
// program's next dlerror() shows.
extern "C" {
__attribute__((weak)) void PyObject_GetArenaAllocator(gpumemprof::probe::ArenaAllocator*);
__attribute__((weak)) void PyObject_SetArenaAllocator(gpumemprof::probe::ArenaAllocator*);
__attribute__((weak)) int Py_IsInitialized(void);
__attribute__((weak)) const char* _PyMem_GetCurrentAllocatorName(void);
}

namespace gpumemprof::probe {
namespace {

/// An arena is 256 KiB or, from 3.10 on, 1 MiB.
constexpr uint64_t kLeastArenaBytes = 256 << 10;

constinit ArenaAllocator g_real{};
uint64_t g_arena_bytes;

void* alloc_arena(void*, size_t size_bytes) {
  void* arena = g_real.alloc(g_real.context, size_bytes);
  if (arena) __atomic_fetch_add(&g_arena_bytes, size_bytes, __ATOMIC_RELAXED);
  return arena;
}

void free_arena(void*, void* arena, size_t size_bytes) {
  __atomic_fetch_sub(&g_arena_bytes, size_bytes, __ATOMIC_RELAXED);
  g_real.free(g_real.context, arena, size_bytes);
}

}  // namespace

void count_python_arenas() {
  if (!PyObject_GetArenaAllocator || !PyObject_SetArenaAllocator || !Py_IsInitialized) return;
  if (!is_preloaded() || Py_IsInitialized()) return;  // there are arenas already
  ArenaAllocator found{};
  PyObject_GetArenaAllocator(&found);
  if (!found.alloc || !found.free) return;
  g_real = found;
  ArenaAllocator ours{nullptr, alloc_arena, free_arena};
  PyObject_SetArenaAllocator(&ours);
}

int64_t python_arenas(const char** why) {
  *why = "";
  const auto unknown = [&](const char* reason) -> int64_t { return *why = reason, -1; };
  if (!g_real.alloc) return unknown("Python's arenas were not counted from the program's start");
  ArenaAllocator now{};
  PyObject_GetArenaAllocator(&now);
  if (now.alloc != alloc_arena) return unknown("the program replaced what allocates Python's arenas");
  const uint64_t bytes = __atomic_load_n(&g_arena_bytes, __ATOMIC_RELAXED);
  // Null where a hook is before it, as tracemalloc's.
  const char* name = _PyMem_GetCurrentAllocatorName ? _PyMem_GetCurrentAllocatorName() : nullptr;
  if (name && strncmp(name, "mimalloc", 8) == 0)
    return unknown("this Python's objects are in mimalloc, which tells nobody");
  if (!name && bytes < kLeastArenaBytes)
    return unknown("a hook hides which allocator Python's objects have");
  return static_cast<int64_t>(bytes);
}

}  // namespace gpumemprof::probe
