// Contexts and modules: the driver does not say what they take, so the device is asked before and
// after. Other processes move that figure too: the recording calls it an estimate.
#include "driver_proxy/management.h"
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// A context that is being made. Where the thread has one on the same device the driver is asked,
/// else NVML.
class NewContext {
 public:
  NewContext(Watch& watch, int device) : watch_(watch), device_(device) {
    if (!watch.is_on()) return;
    const KeepErrno keep;
    asks_driver_ = device_now() == device && used_now(&before_);
    is_known_ = asks_driver_ || used_by_management(device, &before_);
  }
  void made(Pointer key, void* context) {
    if (!watch_.is_on()) return;
    const KeepErrno keep;
    uint64_t after = 0;
    if (is_known_ && ask(&after)) {
      const uint64_t bytes = after > before_ ? after - before_ : 0;
      watch_.took(kSuccess, kDriverContexts, &key, bytes, device_);
    } else {
      watch_.took(kSuccess, kDriverUnmeasured, &key, 0, device_);
    }
    // It need not be the thread's own one by now.
    if (ASK_REAL(Result(void*), cuCtxPushCurrent_v2, context) != kSuccess) return;
    watch_.level_used();
    void* popped = nullptr;
    ASK_REAL(Result(void**), cuCtxPopCurrent_v2, &popped);
  }

 private:
  bool ask(uint64_t* bytes) const {
    return asks_driver_ ? used_now(bytes) : used_by_management(device_, bytes);
  }
  Watch& watch_;
  int device_;
  bool asks_driver_ = false, is_known_ = false;
  uint64_t before_ = 0;
};

bool primary_is_active(int device) {
  unsigned flags = 0;
  int active = 0;
  return ASK_REAL(Result(int, unsigned*, int*), cuDevicePrimaryCtxGetState, device, &flags,
                  &active) == kSuccess &&
         active;
}

constexpr uint32_t kAnyContext = 1u << kDriverContexts | 1u << kDriverUnmeasured;

Pointer as_key(void* context) { return reinterpret_cast<Pointer>(context); }

/// Devices' primary contexts. Kept because the call that ends one does not name it.
constexpr int kMostDevices = 64;
void* g_primary_contexts[kMostDevices];

void know_primary(Result code, void* const* context, int device) {
  if (code == kSuccess && device >= 0 && device < kMostDevices)
    __atomic_store_n(&g_primary_contexts[device], *context, __ATOMIC_RELAXED);
}

/// What was measured of a context's limits goes with it. Told before the call, as another context
/// may have this address at once; taken back where the driver refuses.
class LimitsOf {
 public:
  LimitsOf(Watch& watch, void* context) : watch_(watch), context_(context) {
    if (!watch.is_on() || !context) return;
    const KeepErrno keep;
    for (int limit = 0; limit < kMostLimits; ++limit)
      gone_[limit] = watch->gave(1u << kDriverContexts, limit_key(context, limit));
  }
  void gave(Result code) const {
    if (!watch_.is_on() || !context_ || code == kSuccess) return;
    const KeepErrno keep;
    for (int limit = 0; limit < kMostLimits; ++limit) {
      const DriverLink::Gone& gone = gone_[limit];
      if (gone.kind != kDriverKinds)
        watch_->took(gone.kind, gone.device, limit_key(context_, limit), gone.size_bytes,
                     gone.caller);
    }
  }

 private:
  Watch& watch_;
  void* context_;
  DriverLink::Gone gone_[kMostLimits];
};

void primary_ended(Watch& watch, int device) {
  const KeepErrno keep;
  if (!watch.is_on() || primary_is_active(device)) return;
  if (device >= 0 && device < kMostDevices)
    LimitsOf(watch, __atomic_exchange_n(&g_primary_contexts[device], nullptr, __ATOMIC_RELAXED))
        .gave(kSuccess);
  watch.gives(kAnyContext, primary_key(device));
  read_pools_again(watch, device);
}

}  // namespace

DRIVER_EXPORT Result cuDevicePrimaryCtxRetain(void** context, int device) {
  WATCH();
  if (!watch.is_on() || primary_is_active(device)) {
    const Result code = CALL_REAL(cuDevicePrimaryCtxRetain, context, device);
    know_primary(code, context, device);
    return code;
  }
  NewContext fresh(watch, device);
  const Result code = CALL_REAL(cuDevicePrimaryCtxRetain, context, device);
  know_primary(code, context, device);
  if (code == kSuccess) fresh.made(primary_key(device), *context);
  return code;
}
DRIVER_CALL(cuDevicePrimaryCtxRelease_v2, (int device), (device),
            if (code == kSuccess) primary_ended(watch, device))
DRIVER_CALL(cuDevicePrimaryCtxReset_v2, (int device), (device),
            if (code == kSuccess) primary_ended(watch, device))

DRIVER_EXPORT Result cuCtxCreate_v2(void** context, unsigned flags, int device) {
  WATCH();
  NewContext fresh(watch, device);
  const Result code = CALL_REAL(cuCtxCreate_v2, context, flags, device);
  if (code == kSuccess) fresh.made(as_key(*context), *context);
  return code;
}
DRIVER_EXPORT Result cuCtxCreate_v3(void** context, void* params, int count, unsigned flags,
                                    int device) {
  WATCH();
  NewContext fresh(watch, device);
  const Result code = CALL_REAL(cuCtxCreate_v3, context, params, count, flags, device);
  if (code == kSuccess) fresh.made(as_key(*context), *context);
  return code;
}
DRIVER_EXPORT Result cuCtxCreate_v4(void** context, void* params, unsigned flags, int device) {
  WATCH();
  NewContext fresh(watch, device);
  const Result code = CALL_REAL(cuCtxCreate_v4, context, params, flags, device);
  if (code == kSuccess) fresh.made(as_key(*context), *context);
  return code;
}
DRIVER_EXPORT Result cuCtxDestroy_v2(void* context) {
  WATCH();
  watch.gives(kAnyContext, as_key(context));
  const LimitsOf limits(watch, context);
  const int device = watch.is_on() ? device_now() : -1;
  const Result code = CALL_REAL(cuCtxDestroy_v2, context);
  watch.gave(code);
  limits.gave(code);
  if (watch.is_on()) read_pools_again(watch, device);
  return code;
}

/// Stacks, the heap of device code and the printf buffer are made anew: what was measured of one
/// before counts on.
DRIVER_EXPORT Result cuCtxSetLimit(int limit, size_t value) {
  WATCH();
  const Bracket bracket(watch);
  const Result code = CALL_REAL(cuCtxSetLimit, limit, value);
  uint64_t bytes = 0;
  const int device = watch.is_on() && code == kSuccess ? device_now() : -1;
  if (device < 0 || !bracket.growth(&bytes) || !bytes) return code;
  const KeepErrno keep;
  void* context = nullptr;
  if (limit < 0 || limit >= kMostLimits ||
      ASK_REAL(Result(void**), cuCtxGetCurrent, &context) != kSuccess) {
    watch->lost();
    return code;
  }
  const Pointer key = limit_key(context, limit);
  const DriverLink::Gone before = watch->gave(1u << kDriverContexts, key);
  watch.took(code, kDriverContexts, &key, bytes + before.size_bytes, device);
  watch.level_used();
  return code;
}

DRIVER_LOAD(cuModuleLoad, (Pointer* module, const char* path), (module, path), module)
DRIVER_LOAD(cuModuleLoadData, (Pointer* module, const void* image), (module, image), module)
DRIVER_LOAD(cuModuleLoadDataEx,
            (Pointer* module, const void* image, unsigned count, int* options, void** values),
            (module, image, count, options, values), module)
DRIVER_LOAD(cuModuleLoadFatBinary, (Pointer* module, const void* image), (module, image), module)
DRIVER_FREE(cuModuleUnload, (Pointer module), (module), 1u << kDriverModules, module)

DRIVER_LOAD(cuLibraryLoadData,
            (Pointer* library, const void* image, int* jit, void** jits, unsigned jit_count,
             int* options, void** values, unsigned count),
            (library, image, jit, jits, jit_count, options, values, count), library)
DRIVER_LOAD(cuLibraryLoadFromFile,
            (Pointer* library, const char* path, int* jit, void** jits, unsigned jit_count,
             int* options, void** values, unsigned count),
            (library, path, jit, jits, jit_count, options, values, count), library)
DRIVER_FREE(cuLibraryUnload, (Pointer library), (library), 1u << kDriverModules, library)
