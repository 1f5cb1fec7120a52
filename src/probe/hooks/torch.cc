// PyTorch: the functions of libc10 that every tensor's memory passes through, defined here under
// their mangled names. A preloaded library comes first in symbol lookup and every caller goes
// through the PLT or GOT, so they land here; we call the real one and write down what it did.
//
//   c10::alloc_cpu, free_cpu           every CPU tensor (all releases from 1.7 on export them)
//   reportMemoryUsageToProfiler        device memory, shared memory; called whether anybody
//   profiles or not.
//                                      CUDA calls it with the device allocator's lock held: no GIL,
//                                      no torch.
//   reportOutOfMemoryToProfiler        a refused allocation of a device
//   ThrowEnforceNotMet                 what alloc_cpu ends in when it is refused
//
// memoryProfilingEnabled is left alone: answering true would put events into the user's own
// profile.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/counters.h"
#include "probe/dynamic.h"
#include "probe/framework.h"
#include "probe/hooks/host/host.h"
#include "probe/hooks/torch_parts.h"
#include "probe/hot.h"
#include "probe/program_end.h"
#include "probe/recorder.h"
#include "probe/scopes.h"
#include "probe/stream.h"

#define HOOK extern "C" __attribute__((visibility("default")))

namespace gpumemprof::probe {
namespace {

using namespace format;

// Fallbacks for a program whose c10 cannot be found: what c10 itself does
// (c10/core/impl/alloc_cpu.cpp: 64-byte alignment).
extern "C" int posix_memalign(void**, size_t, size_t);
extern "C" void free(void*);

void* plain_alloc(size_t size) {
  void* p = nullptr;
  return size && posix_memalign(&p, 64, size) == 0 ? p : nullptr;
}
void plain_free(void* p) { free(p); }

/// A real function, looked up on its first call.
template <class F>
struct Real {
  F function;
  F get(const char* name, const void* ours, F fallback) {
    F known = __atomic_load_n(&function, __ATOMIC_ACQUIRE);
    if (__builtin_expect(known != nullptr, 1)) return known;
    auto found = reinterpret_cast<F>(find_real(name, ours, "libc10"));
    if (!found) found = fallback;
    __atomic_store_n(&function, found, __ATOMIC_RELEASE);
    return found;
  }
  /// The same without a fallback: null where no loaded library defines it.
  void* find(const char* name, const void* ours) {
    if (F known = __atomic_load_n(&function, __ATOMIC_ACQUIRE)) {
      return reinterpret_cast<void*>(known);
    }
    void* found = find_real(name, ours, "libc10");
    if (found) __atomic_store_n(&function, reinterpret_cast<F>(found), __ATOMIC_RELEASE);
    return found;
  }
};

ObjectRange g_libc10;

/// True for a report that the CPU allocator makes while somebody profiles: alloc_cpu has told us
/// already. Shared memory reports from libtorch_cpu, outside libc10.
bool is_cpu_allocator(Device device, const void* caller, const void* real) {
  if (device.type != 0) return false;
  if (__atomic_load_n(&g_libc10.end, __ATOMIC_ACQUIRE) == 0 && real) {
    ObjectRange range = object_of(real);
    g_libc10.begin = range.begin;
    __atomic_store_n(&g_libc10.end, range.end, __ATOMIC_RELEASE);
  }
  return g_libc10.contains(caller);
}

void on_report(void* p, int64_t size, uint64_t allocated, uint64_t reserved, Device device,
               const void* caller, const void* real) {
  bool is_recording = state() != kOff;
  if ((!is_recording && !is_counting()) || size == 0) return;
  if (is_cpu_allocator(device, caller, real)) return;
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  bool is_alloc = size > 0;
  uint64_t bytes = static_cast<uint64_t>(is_alloc ? size : -size);
  if (is_counting() && is_alloc) count_alloc(address, bytes, device);
  if (is_counting() && !is_alloc) count_free(address, device);
  if (!is_recording) return;
  if (!is_alloc) look_for_program_end();
  if (device.type == 0) {
    record(is_alloc ? kRawAlloc : kRawFreeCompleted, address, bytes, kClassShared);
  } else {
    const AllocatorSays* says = is_alloc ? cuda_says_of_alloc(address, bytes, reserved, device)
                                         : cuda_says_of_free(address, reserved, device);
    record_device(is_alloc ? kRawAlloc : kRawFreeRequested, address, bytes, device, allocated,
                  reserved, says);
  }
}

void on_oom(int64_t size, uint64_t allocated, uint64_t reserved, Device device) {
  // The CPU's allocator reports only while somebody profiles; on_enforce() has told it already.
  if (state() == kOff || size < 0 || device.type == 0) return;
  record_device(kRawOom, 0, static_cast<uint64_t>(size), device, allocated, reserved,
                cuda_says_of_oom(device));
}

/// `message` is a std::string of either ABI: both begin with the address of their text.
void on_enforce(const void* message) {
  if (state() == kOff || g_config.no_cpu) return;
  constexpr char kRefused[] = "DefaultCPUAllocator: can't allocate memory: you tried to allocate ";
  const char* text = *static_cast<const char* const*>(message);
  const char* digits = text ? strstr(text, kRefused) : nullptr;
  if (!digits) return;
  uint64_t size = 0;
  for (digits += sizeof(kRefused) - 1; *digits >= '0' && *digits <= '9'; ++digits)
    size = size * 10 + static_cast<uint64_t>(*digits - '0');
  record(kRawOom, 0, size, kClassCpu);
}

constexpr Device kCpu{0, -1};

HOT_DATA Real<void* (*)(size_t)> g_alloc_cpu;
HOT_DATA Real<void (*)(void*)> g_free_cpu;

}  // namespace

#define ALLOC_CPU "_ZN3c109alloc_cpuEm"
HOOK void* gpumemprof_hook_alloc_cpu(size_t size) __asm__(ALLOC_CPU);
HOT void* gpumemprof_hook_alloc_cpu(size_t size) {
  HOT_DATA static bool has_modes;
  if (__builtin_expect(!__atomic_load_n(&has_modes, __ATOMIC_RELAXED), 0)) {
    __atomic_store_n(&has_modes, true, __ATOMIC_RELAXED);
    prepare_torch_modes();
    leave_blocks_of(object_of(g_alloc_cpu.find(
        ALLOC_CPU, reinterpret_cast<void*>(&gpumemprof_hook_alloc_cpu))));
  }
  // It may throw: the exception passes through this frame, so nothing may be held here.
  void* p = g_alloc_cpu.get(ALLOC_CPU, reinterpret_cast<void*>(&gpumemprof_hook_alloc_cpu),
                            plain_alloc)(size);
  if (p && is_counting()) count_alloc(reinterpret_cast<uintptr_t>(p), size, kCpu);
  if (p && !g_config.no_cpu && state() != kOff && !is_test_block(reinterpret_cast<uintptr_t>(p))) {
    record(kRawAlloc, reinterpret_cast<uintptr_t>(p), size, kClassCpu);
  }
  return p;
}

#define FREE_CPU "_ZN3c108free_cpuEPv"
HOOK void gpumemprof_hook_free_cpu(void* p) __asm__(FREE_CPU);
HOT void gpumemprof_hook_free_cpu(void* p) {
  // Before the real free: afterwards another thread may be given the address, and its allocation
  // would come first.
  if (p && is_counting()) count_free(reinterpret_cast<uintptr_t>(p), kCpu);
  if (p && !g_config.no_cpu && state() != kOff && !is_test_block(reinterpret_cast<uintptr_t>(p))) {
    look_for_program_end();
    record(kRawFreeCompleted, reinterpret_cast<uintptr_t>(p), 0, kClassCpu);
  }
  g_free_cpu.get(FREE_CPU, reinterpret_cast<void*>(&gpumemprof_hook_free_cpu), plain_free)(p);
}

// The exception passes through. The last argument, the caller, is forwarded unchanged.
#define ENFORCE_HOOK(id, mangled)                                                                 \
  static Real<void (*)(const char*, int, const char*, const void*, const void*)> g_enforce_##id;  \
  static void no_enforce_##id(const char*, int, const char*, const void*, const void*) { abort(); } \
  HOOK void gpumemprof_hook_enforce_##id(const char*, int, const char*, const void*, const void*) \
      __asm__(mangled);                                                                           \
  void gpumemprof_hook_enforce_##id(const char* file, int line, const char* condition,            \
                                    const void* message, const void* caller) {                    \
    on_enforce(message);                                                                          \
    g_enforce_##id.get(mangled, reinterpret_cast<void*>(&gpumemprof_hook_enforce_##id),           \
                       no_enforce_##id)(file, line, condition, message, caller);                  \
  }

#define ENFORCE_NEW                                                                       \
  "_ZN3c1018ThrowEnforceNotMetEPKciS1_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaI" \
  "cEEEPKv"
#define ENFORCE_OLD "_ZN3c1018ThrowEnforceNotMetEPKciS1_RKSsPKv"  // of the ABI before C++11
ENFORCE_HOOK(new, ENFORCE_NEW)
ENFORCE_HOOK(old, ENFORCE_OLD)

// The report functions in all signatures that PyTorch has had. Arguments travel in the same
// registers whether they are signed or not, so one body serves them; each calls the real function
// of its own name where there is one.
#define REPORT_HOOK(id, mangled, T)                                                               \
  static Real<void (*)(void*, int64_t, T, T, Device)> g_report_##id;                              \
  static void no_report_##id(void*, int64_t, T, T, Device) {}                                     \
  HOOK void gpumemprof_hook_report_##id(void*, int64_t, T, T, Device) __asm__(mangled);           \
  void gpumemprof_hook_report_##id(void* p, int64_t size, T allocated, T reserved,                \
                                   Device device) {                                               \
    auto real = g_report_##id.get(mangled, reinterpret_cast<void*>(&gpumemprof_hook_report_##id), \
                                  no_report_##id);                                                \
    on_report(p, size, static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved), device, \
              __builtin_return_address(0), reinterpret_cast<void*>(real));                        \
    real(p, size, allocated, reserved, device);                                                   \
  }

REPORT_HOOK(mm, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", uint64_t)  // 2.0 on
REPORT_HOOK(ll, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", int64_t)   // 1.10 to 1.13

#define REPORT_3 "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE"  // 1.7 to 1.9: no totals
static Real<void (*)(void*, int64_t, Device)> g_report_3;
static void no_report_3(void*, int64_t, Device) {}
HOOK void gpumemprof_hook_report_3(void*, int64_t, Device) __asm__(REPORT_3);
void gpumemprof_hook_report_3(void* p, int64_t size, Device device) {
  auto real =
      g_report_3.get(REPORT_3, reinterpret_cast<void*>(&gpumemprof_hook_report_3), no_report_3);
  on_report(p, size, 0, 0, device, __builtin_return_address(0), reinterpret_cast<void*>(real));
  real(p, size, device);
}

#define OOM_HOOK(id, mangled, S, T)                                                           \
  static Real<void (*)(S, T, T, Device)> g_oom_##id;                                          \
  static void no_oom_##id(S, T, T, Device) {}                                                 \
  HOOK void gpumemprof_hook_oom_##id(S, T, T, Device) __asm__(mangled);                       \
  void gpumemprof_hook_oom_##id(S size, T allocated, T reserved, Device device) {             \
    on_oom(static_cast<int64_t>(size), static_cast<uint64_t>(allocated),                      \
           static_cast<uint64_t>(reserved), device);                                          \
    g_oom_##id.get(mangled, reinterpret_cast<void*>(&gpumemprof_hook_oom_##id), no_oom_##id)( \
        size, allocated, reserved, device);                                                   \
  }

OOM_HOOK(lmm, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", int64_t, uint64_t)  // 2.0 on
OOM_HOOK(lll, "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", int64_t,
         int64_t)  // 1.12, 1.13
OOM_HOOK(mmm, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE", uint64_t, uint64_t)

namespace {

template <class F>
F python(const char* name) {
  return dlsym ? reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)) : nullptr;
}

/// Whether a block that PyTorch makes from Python arrives. 1: yes, 0: no, -1: there is no PyTorch
/// to ask (no interpreter, not imported yet). A storage, as no dispatch mode of the program's
/// stands between that and the allocator.
int ask_torch() {
  auto is_initialized = python<int (*)()>("Py_IsInitialized");
  auto ensure = python<int (*)()>("PyGILState_Ensure");
  auto release = python<void (*)(int)>("PyGILState_Release");
  auto modules = python<void* (*)()>("PyImport_GetModuleDict");
  auto item = python<void* (*)(void*, const char*)>("PyDict_GetItemString");
  auto call = python<void* (*)(void*, const char*, const char*, ...)>("PyObject_CallMethod");
  auto number = python<unsigned long long (*)(void*)>("PyLong_AsUnsignedLongLong");
  auto fetch = python<void (*)(void**, void**, void**)>("PyErr_Fetch");
  auto restore = python<void (*)(void*, void*, void*)>("PyErr_Restore");
  auto drop = python<void (*)(void*)>("Py_DecRef");
  if (!is_initialized || !ensure || !release || !modules || !item || !call || !number || !fetch ||
      !restore || !drop || !is_initialized()) {
    return -1;
  }
  int gil = ensure();
  void *type, *value, *trace;
  fetch(&type, &value, &trace);  // the caller's own exception, if there is one
  int answer = -1;
  void* torch = modules() ? item(modules(), "torch") : nullptr;  // borrowed
  t_scopes.test_address = 0;
  t_scopes.test = kTestAwaited;
  void* storage =
      torch ? call(torch, "UntypedStorage", "i", static_cast<int>(kTestBytes)) : nullptr;
  void* address = storage ? call(storage, "data_ptr", nullptr) : nullptr;
  if (address) answer = number(address) == t_scopes.test_address;
  if (address) drop(address);
  if (storage) drop(storage);
  t_scopes.test = kNoTest;
  restore(type, value, trace);  // and away with what the calls above may have raised
  release(gil);
  return answer;
}

#define TORCH_HOOK(real, hook, mangled, is_alloc) \
  {mangled, reinterpret_cast<void*>(&hook),       \
   [] { return real.find(mangled, reinterpret_cast<void*>(&hook)); }, is_alloc}

const Hook kHooks[] = {
    TORCH_HOOK(g_alloc_cpu, gpumemprof_hook_alloc_cpu, ALLOC_CPU, true),
    TORCH_HOOK(g_free_cpu, gpumemprof_hook_free_cpu, FREE_CPU, false),
    TORCH_HOOK(g_report_mm, gpumemprof_hook_report_mm,
               "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", false),
    TORCH_HOOK(g_report_ll, gpumemprof_hook_report_ll,
               "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", false),
    TORCH_HOOK(g_report_3, gpumemprof_hook_report_3, REPORT_3, false),
    TORCH_HOOK(g_oom_lmm, gpumemprof_hook_oom_lmm,
               "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", false),
    TORCH_HOOK(g_oom_lll, gpumemprof_hook_oom_lll,
               "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", false),
    TORCH_HOOK(g_oom_mmm, gpumemprof_hook_oom_mmm,
               "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE", false),
    TORCH_HOOK(g_enforce_new, gpumemprof_hook_enforce_new, ENFORCE_NEW, false),
    TORCH_HOOK(g_enforce_old, gpumemprof_hook_enforce_old, ENFORCE_OLD, false),
    kCudaHooks[0],
    kCudaHooks[1],
    kAutogradHooks[0],
    kSavedHooks[0],
    kCopyHooks[0],
    kCollectiveHooks[0],
    kCollectiveHooks[1],
    kCollectiveHooks[2],
    kCollectiveHooks[3],
};

Framework g_torch{kHooks,
                  sizeof(kHooks) / sizeof(kHooks[0]),
                  "no library calls c10::alloc_cpu through a table (libc10 linked with -Bsymbolic)",
                  ask_torch,
                  "a tensor's memory did not come from c10::alloc_cpu: another allocator is in use",
                  nullptr};

__attribute__((constructor)) void enter() { enter_framework(&g_torch); }

}  // namespace
}  // namespace gpumemprof::probe
