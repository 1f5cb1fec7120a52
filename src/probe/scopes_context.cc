#include "probe/scopes_context.h"

#include <string.h>

#include "probe/dynamic.h"
#include "probe/python_frames.h"

namespace gpumemprof::probe {
namespace {

// `context` in PyThreadState (Include/cpython/pystate.h), by the minor version from 3.9 on. The
// type of what is found there is checked each time, so a wrong offset cannot pass for a context.
constexpr uint32_t kContextOffsets[] = {240, 240, 224, 208, 208, 208};
// `ctx_entered` in struct _pycontextobject (Include/internal/pycore_context.h), the same in all.
constexpr uint32_t kEnteredOffset = 40;
constexpr uint32_t kTypeOffset = 8;  // ob_type in PyObject

struct Contexts {
  void* (*this_thread_state)();
  int (*is_finalizing)();
  const void* type;
  uint32_t offset;
  uint32_t is_known;
} g_contexts;

template <class F>
F symbol(const char* name) {
  return dlsym ? reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)) : nullptr;
}

/// 11 of "3.11.7 (main, …"; -1 for what is not Python 3.
int minor_version(const char* text) {
  if (!text || text[0] != '3' || text[1] != '.') return -1;
  int minor = 0;
  for (const char* p = text + 2; *p >= '0' && *p <= '9' && minor < 100; ++p) {
    minor = minor * 10 + (*p - '0');
  }
  return minor;
}

bool is_free_threaded(int minor) {
  if (minor < 13) return false;
  const uint64_t* offsets = symbol<const uint64_t*>("_PyRuntime");
  return !offsets || memcmp(offsets, "xdebugpy", 8) != 0 || offsets[2] != 0;
}

}  // namespace

bool know_contexts() {
  if (__atomic_load_n(&g_contexts.is_known, __ATOMIC_ACQUIRE)) return true;
  auto* get_version = symbol<const char* (*)()>("Py_GetVersion");
  int minor = get_version ? minor_version(get_version()) : -1;
  if (minor < 9 || minor > 14 || is_free_threaded(minor)) return false;
  // Several threads may be here; all of them find the same.
  g_contexts.this_thread_state = symbol<void* (*)()>("PyGILState_GetThisThreadState");
  g_contexts.is_finalizing = symbol<int (*)()>("Py_IsFinalizing");
  if (!g_contexts.is_finalizing) g_contexts.is_finalizing = symbol<int (*)()>("_Py_IsFinalizing");
  g_contexts.type = symbol<const void*>("PyContext_Type");
  g_contexts.offset = kContextOffsets[minor - 9];
  if (!g_contexts.this_thread_state || !g_contexts.is_finalizing || !g_contexts.type) return false;
  __atomic_store_n(&g_contexts.is_known, 1, __ATOMIC_RELEASE);
  return true;
}

uint64_t current_context() {
  const Contexts& known = g_contexts;
  if (!__atomic_load_n(&known.is_known, __ATOMIC_ACQUIRE)) return kNoContext;
  const void* thread = known.this_thread_state();
  if (!thread || known.is_finalizing()) return kNoContext;
  const void* context = load<const void*>(thread, known.offset);
  if (!context) return kBaseContext;
  if (load<const void*>(context, kTypeOffset) != known.type) return kNoContext;
  // A thread's first context is made when a variable is first set, and is never entered.
  return load<int>(context, kEnteredOffset) ? reinterpret_cast<uintptr_t>(context) : kBaseContext;
}

}  // namespace gpumemprof::probe
