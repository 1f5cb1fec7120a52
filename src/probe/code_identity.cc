#include "probe/code_identity.h"

#include <string.h>

#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/watched_code.h"

namespace gpumemprof::probe {

constinit CodeWatch g_code_watch{};
HOT_DATA uint32_t g_code_epoch;

namespace {

// PyTypeObject behind its head: tp_name, tp_basicsize, tp_itemsize, tp_dealloc
// (Include/cpython/object.h; the same since Python 2.2).
constexpr uint32_t kTypeName = 0, kTypeDealloc = 24;

using Dealloc = void (*)(void*);
Dealloc g_code_dealloc;

/// Runs before the memory can be used again; with the GIL held where there is one.
void on_code_dealloc(void* code) {
  uint32_t hash = code_hash(code);
  uint64_t word = __atomic_load_n(&g_code_watch.known[hash >> 6 & 1023], __ATOMIC_RELAXED);
  if (word >> (hash & 63) & 1) {
    forget_watched(code);
    __atomic_fetch_add(&g_code_watch.generations[hash % kGenerationBuckets], 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&g_code_epoch, 1, __ATOMIC_RELEASE);
  }
  g_code_dealloc(code);
}

}  // namespace

uint32_t know_code(const void* code) {
  uint32_t hash = code_hash(code);
  uint64_t bit = uint64_t{1} << (hash & 63);
  uint64_t* word = &g_code_watch.known[hash >> 6 & 1023];
  if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) {
    __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&g_code_watch.generations[hash % kGenerationBuckets], __ATOMIC_ACQUIRE);
}

bool watch_code_objects(void* code_type, uint32_t head) {
  if (!code_type) return false;
  const char* name = load<const char*>(code_type, head + kTypeName);
  if (!name || strcmp(name, "code") != 0) return false;
  auto* slot = reinterpret_cast<Dealloc*>(static_cast<char*>(code_type) + head + kTypeDealloc);
  Dealloc current = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (current == on_code_dealloc) return true;  // a forked child inherits it
  if (!current) return false;
  g_code_dealloc = current;
  __atomic_store_n(slot, &on_code_dealloc, __ATOMIC_RELEASE);
  return true;
}

}  // namespace gpumemprof::probe
