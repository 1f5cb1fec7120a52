#include "probe/modules.h"

#include <string.h>

#include "probe/dynamic.h"
#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

constinit uint64_t g_forgotten[kForgottenBits / 64];
HOT_DATA uint32_t g_has_forgotten;

namespace {

// PyObject: reference count, then the class; PyTypeObject: tp_name after a head of 24 bytes
// (Include/object.h and cpython/object.h; the same in all Pythons with a GIL).
constexpr uint32_t kObjectType = 8, kTypeName = 24;

struct Entry {
  uint64_t object;  // 0: free
  uint64_t type;
  uint32_t is_ready;  // stored last
  uint32_t named_in;  // incarnation of the recording that knows its path
  uint8_t length;
  char class_name[kMostClassName];
  uint32_t pad;
};
static_assert(sizeof(Entry) == 128);
Entry g_entries[kModules];  // 1 MiB of zeros that cost nothing until they are used

constexpr uint32_t kProbes = 32;

/// By the address alone, so that all that lay at it one after the other are neighbours.
uint32_t first_slot(uint64_t object) {
  return static_cast<uint32_t>(object * 0x9e3779b97f4a7c15u >> 40);
}

uint8_t class_name(const void* type, char out[kMostClassName]) {
  const char* name = load<const char*>(type, kTypeName);
  if (!name) return 0;
  const size_t length = length_of_text(name, kMostClassName);
  memcpy(out, name, length);
  return static_cast<uint8_t>(length);
}

HOT Entry* entry_of(const void* object, const void* type) {
  const auto key = reinterpret_cast<uintptr_t>(object);
  const auto class_key = reinterpret_cast<uintptr_t>(type);
  const uint32_t first = first_slot(key);
  for (uint32_t i = 0; i < kProbes; ++i) {
    Entry* entry = &g_entries[(first + i) % kModules];
    uint64_t known = __atomic_load_n(&entry->object, __ATOMIC_ACQUIRE);
    if (known == 0 && __atomic_compare_exchange_n(&entry->object, &known, key, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      entry->type = class_key;
      entry->length = class_name(type, entry->class_name);
      __atomic_store_n(&entry->is_ready, 1, __ATOMIC_RELEASE);
      return entry;
    }
    if (known != key) continue;
    if (!__atomic_load_n(&entry->is_ready, __ATOMIC_ACQUIRE)) return nullptr;
    if (entry->type == class_key) return entry;
  }
  return nullptr;
}

uint32_t write_text(const char* name, uint32_t length, uint64_t address,
                    char out[kMostModuleText]) {
  memcpy(out, name, length);
  out[length++] = '@';
  int shift = 60;
  while (shift > 0 && (address >> shift & 15) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) out[length++] = "0123456789abcdef"[address >> shift & 15];
  return length;
}

/// The call that was asked for. `call` is taken away by who makes it.
struct Wanted {
  int (*call)(void*);
  void* argument;
};
Wanted g_wanted;
uint32_t g_is_changing;  // one thread at a time; who finds it taken goes on without

/// Has the interpreter make the call. Its queue is an array of fixed size behind a lock that is
/// only ever held for the few instructions in which an entry is put in or taken out, without any
/// call: whoever holds it waits for nothing, with the GIL or without. (3.11: ceval.c, 3.13 on:
/// ceval_gil.c, _PyEval_AddPendingCall.)
bool schedule(const Wanted& wanted) {
  static int (*add)(int (*)(void*), void*);
  if (!add && dlsym) {
    add = reinterpret_cast<decltype(add)>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  }
  return add && add(wanted.call, wanted.argument) == 0;
}

bool begin_change() { return !__atomic_exchange_n(&g_is_changing, 1, __ATOMIC_ACQUIRE); }
void end_change() { __atomic_store_n(&g_is_changing, 0, __ATOMIC_RELEASE); }

}  // namespace

/// What the thread asked for last: nodes are made one after the other in one module. Plain data.
struct LastModule {
  const void* object;
  const void* type;
  uint32_t number;
};
static thread_local LastModule t_last __attribute__((tls_model("initial-exec")));

HOT uint32_t module_number(const void* object, const void* type) {
  if (t_last.object == object && t_last.type == type) return t_last.number;
  const Entry* entry = entry_of(object, type);
  if (!entry) return 0;
  const auto number = static_cast<uint32_t>(entry - g_entries) + 1;
  // A signal handler that asks in between finds none, never half of one.
  __atomic_store_n(&t_last.object, nullptr, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  t_last.type = type, t_last.number = number;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&t_last.object, object, __ATOMIC_RELAXED);
  return number;
}

uint32_t module_text(uint32_t number, char out[kMostModuleText]) {
  if (number == 0 || number > kModules) return 0;
  const Entry& entry = g_entries[number - 1];
  if (!__atomic_load_n(&entry.is_ready, __ATOMIC_ACQUIRE)) return 0;
  return write_text(entry.class_name, entry.length, entry.object, out);
}

uint32_t module_text(const void* object, const void* type, char out[kMostModuleText]) {
  char name[kMostClassName];
  return write_text(name, class_name(type, name), reinterpret_cast<uintptr_t>(object), out);
}

static void set_forgotten(const void* object, bool is_forgotten) {
  const uint64_t hash = reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15u >> 52;
  const uint64_t bit = uint64_t{1} << (hash & 63);
  if (is_forgotten) {
    __atomic_fetch_or(&g_forgotten[hash >> 6], bit, __ATOMIC_RELAXED);
    __atomic_store_n(&g_has_forgotten, 1, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_and(&g_forgotten[hash >> 6], ~bit, __ATOMIC_RELAXED);
  }
}

/// What lies at the address now, or will, is new. The object may be gone.
static void forget_name(const void* object) {
  const auto key = reinterpret_cast<uintptr_t>(object);
  for (uint32_t i = 0; i < kProbes; ++i) {
    Entry* entry = &g_entries[(first_slot(key) + i) % kModules];
    if (__atomic_load_n(&entry->object, __ATOMIC_ACQUIRE) != key) continue;
    __atomic_store_n(&entry->named_in, 0, __ATOMIC_RELAXED);
  }
  set_forgotten(object, true);
}

void name_module(const void* object, const char* path) {
  if (!object || !path) return;
  const auto length = static_cast<uint32_t>(length_of_text(path, kMostMarkText));
  record_mark(format::kMarkModule, reinterpret_cast<uintptr_t>(object), 0, path, length);
  if (!length) return forget_name(object);
  if (!g_python.ready || state() != kRecording) return;
  Entry* entry = entry_of(object, load<const void*>(object, kObjectType));
  if (entry) __atomic_store_n(&entry->named_in, incarnation(), __ATOMIC_RELAXED);
  if (entry && may_be_new(object)) set_forgotten(object, false);
}

void when_module_is_new(int (*call)(void*), void* argument) {
  // Another thread inside is about to schedule or to set one; it needs well under a microsecond.
  for (int i = 0; i < 1000000 && !begin_change(); ++i) {
  }
  g_wanted.argument = argument;
  __atomic_store_n(&g_wanted.call, call, __ATOMIC_RELEASE);
  end_change();
}

void saw_module(const void* object, const void* type) {
  if (!__atomic_load_n(&g_wanted.call, __ATOMIC_ACQUIRE)) return;
  const Entry* entry = entry_of(object, type);
  if (entry && __atomic_load_n(&entry->named_in, __ATOMIC_RELAXED) == incarnation()) return;
  if (!begin_change()) return;
  if (g_wanted.call && schedule(g_wanted)) {
    __atomic_store_n(&g_wanted.call, nullptr, __ATOMIC_RELEASE);
  }
  end_change();
}

}  // namespace gpumemprof::probe
