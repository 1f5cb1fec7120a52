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

DRIVER_CALL(cuMemAlloc_v2, (Pointer* out, size_t bytes), (out, bytes),
            watch.took(code, kDriverMemory, out, bytes))

DRIVER_CALL(cuMemAllocPitch_v2,
            (Pointer* out, size_t* pitch, size_t width, size_t height, unsigned element),
            (out, pitch, width, height, element),
            watch.took(code, kDriverMemory, out, (code == kSuccess ? *pitch : width) * height))

DRIVER_FREE(cuMemFree_v2, (Pointer address), (address), kAnyDeviceMemory, address)

DRIVER_CALL(cuMemAllocManaged, (Pointer* out, size_t bytes, unsigned flags), (out, bytes, flags),
            watch.took(code, kDriverManaged, out, bytes))

DRIVER_CALL(cuMemAllocHost_v2, (void** out, size_t bytes), (out, bytes),
            watch.took(code, kDriverPinned, as_key(out), bytes, 0))

DRIVER_CALL(cuMemHostAlloc, (void** out, size_t bytes, unsigned flags), (out, bytes, flags),
            watch.took(code, kDriverPinned, as_key(out), bytes, 0))

DRIVER_FREE(cuMemFreeHost, (void* address), (address), 1u << kDriverPinned, as_key(address))

DRIVER_CALL(cuMemHostRegister_v2, (void* address, size_t bytes, unsigned flags),
            (address, bytes, flags),
            watch.took(code, kDriverRegistered, as_key(&address), bytes, 0))

DRIVER_FREE(cuMemHostUnregister, (void* address), (address), 1u << kDriverRegistered,
            as_key(address))

DRIVER_CALL(cuMemGetInfo_v2, (size_t* free, size_t* total), (free, total),
            if (code == kSuccess) watch.level_used())

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

DRIVER_FREE(cuIpcCloseMemHandle, (Pointer address), (address), 1u << kDriverImported, address)
