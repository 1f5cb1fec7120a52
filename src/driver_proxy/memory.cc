// Memory of the device, of the host, of other processes.
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// A pool's memory may be the host's.
constexpr uint32_t kAnyDeviceMemory =
    1u << kDriverMemory | 1u << kDriverInPools | 1u << kDriverManaged | 1u << kDriverPinned;

/// A host's pointer as the driver's.
const Pointer* as_key(void* const* address) { return reinterpret_cast<const Pointer*>(address); }
Pointer as_key(void* address) { return reinterpret_cast<Pointer>(address); }

}  // namespace

DRIVER_EXPORT Result cuMemAlloc_v2(Pointer* out, size_t bytes) {
  WATCH();
  const Result code = CALL_REAL(cuMemAlloc_v2, out, bytes);
  watch.took(code, kDriverMemory, out, bytes);
  return code;
}

DRIVER_EXPORT Result cuMemAllocPitch_v2(Pointer* out, size_t* pitch, size_t width, size_t height,
                                        unsigned element) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocPitch_v2, out, pitch, width, height, element);
  watch.took(code, kDriverMemory, out, (code == kSuccess ? *pitch : width) * height);
  return code;
}

DRIVER_EXPORT Result cuMemFree_v2(Pointer address) {
  WATCH();
  watch.gives(kAnyDeviceMemory, address);
  const Result code = CALL_REAL(cuMemFree_v2, address);
  watch.gave(code);
  return code;
}

DRIVER_EXPORT Result cuMemAllocManaged(Pointer* out, size_t bytes, unsigned flags) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocManaged, out, bytes, flags);
  watch.took(code, kDriverManaged, out, bytes);
  return code;
}

DRIVER_EXPORT Result cuMemAllocHost_v2(void** out, size_t bytes) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocHost_v2, out, bytes);
  watch.took(code, kDriverPinned, as_key(out), bytes, 0);
  return code;
}

DRIVER_EXPORT Result cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  WATCH();
  const Result code = CALL_REAL(cuMemHostAlloc, out, bytes, flags);
  watch.took(code, kDriverPinned, as_key(out), bytes, 0);
  return code;
}

DRIVER_EXPORT Result cuMemFreeHost(void* address) {
  WATCH();
  watch.gives(1u << kDriverPinned, as_key(address));
  const Result code = CALL_REAL(cuMemFreeHost, address);
  watch.gave(code);
  return code;
}

DRIVER_EXPORT Result cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  WATCH();
  const Result code = CALL_REAL(cuMemHostRegister_v2, address, bytes, flags);
  watch.took(code, kDriverRegistered, as_key(&address), bytes, 0);
  return code;
}

DRIVER_EXPORT Result cuMemHostUnregister(void* address) {
  WATCH();
  watch.gives(1u << kDriverRegistered, as_key(address));
  const Result code = CALL_REAL(cuMemHostUnregister, address);
  watch.gave(code);
  return code;
}

DRIVER_EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  WATCH();
  const Result code = CALL_REAL(cuMemGetInfo_v2, free, total);
  if (code == kSuccess) watch.level_used();
  return code;
}

/// CUipcMemHandle: 64 bytes, handed over by value.
struct IpcHandle {
  char bytes[64];
};

DRIVER_EXPORT Result cuIpcOpenMemHandle_v2(Pointer* out, IpcHandle handle, unsigned flags) {
  WATCH();
  const Result code = CALL_REAL(cuIpcOpenMemHandle_v2, out, handle, flags);
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    size_t bytes = 0;
    Pointer base = 0;
    if (ASK_REAL(Result(Pointer*, size_t*, Pointer), cuMemGetAddressRange_v2, &base, &bytes,
                 *out) != kSuccess) {
      bytes = 0;
      watch->lost();
    }
    watch.took(code, kDriverImported, out, bytes);
  }
  return code;
}

DRIVER_EXPORT Result cuIpcCloseMemHandle(Pointer address) {
  WATCH();
  watch.gives(1u << kDriverImported, address);
  const Result code = CALL_REAL(cuIpcCloseMemHandle, address);
  watch.gave(code);
  return code;
}
