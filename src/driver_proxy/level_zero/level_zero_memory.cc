// Level Zero's memory: of devices, shared, of the host, of other processes. All functions that are
// not recorded reach the real loader without us.
#include "driver_proxy/level_zero/level_zero.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

constexpr uint32_t kAny =
    1u << kDriverMemory | 1u << kDriverManaged | 1u << kDriverPinned | 1u << kDriverImported;

/// ze_ipc_mem_handle_t: 64 bytes, handed over by value.
struct ZeIpcHandle {
  char bytes[64];
};

}  // namespace

DRIVER_EXPORT Result zeMemAllocDevice(ZeHandle context, const void* desc, size_t bytes,
                                      size_t alignment, ZeHandle device, void** out) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeMemAllocDevice, context, desc, bytes, alignment, device, out));
  const bool is_other = watch.is_on() && code == kSuccess && is_followed_by(desc, kImportsFd);
  took_on(watch, code, is_other ? kDriverImported : kDriverMemory, out, bytes, device);
  return code;
}

/// Pages are on the device or the host, whichever touched them last.
DRIVER_EXPORT Result zeMemAllocShared(ZeHandle context, const void* device_desc,
                                      const void* host_desc, size_t bytes, size_t alignment,
                                      ZeHandle device, void** out) {
  WATCH();
  const Result code = or_unsupported(
      CALL_REAL(zeMemAllocShared, context, device_desc, host_desc, bytes, alignment, device, out));
  // Without a device any may have it: counted with the first.
  const int number = device ? -1 : kFirstLevelZeroDevice;
  if (device)
    took_on(watch, code, kDriverManaged, out, bytes, device);
  else
    watch.took(in_common(code), kDriverManaged, reinterpret_cast<const Pointer*>(out), bytes,
               number);
  return code;
}

DRIVER_EXPORT Result zeMemAllocHost(ZeHandle context, const void* desc, size_t bytes,
                                    size_t alignment, void** out) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeMemAllocHost, context, desc, bytes, alignment, out));
  took_on(watch, code, kDriverPinned, out, bytes, nullptr);
  return code;
}

DRIVER_EXPORT Result zeMemFree(ZeHandle context, void* address) {
  WATCH();
  watch.gives(kAny, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeMemFree, context, address));
  watch.gave(in_common(code));
  return code;
}

DRIVER_EXPORT Result zeMemFreeExt(ZeHandle context, const void* desc, void* address) {
  WATCH();
  watch.gives(kAny, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeMemFreeExt, context, desc, address));
  watch.gave(in_common(code));
  return code;
}

/// Another process pays for it.
DRIVER_EXPORT Result zeMemOpenIpcHandle(ZeHandle context, ZeHandle device, ZeIpcHandle handle,
                                        uint32_t flags, void** out) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeMemOpenIpcHandle, context, device, handle, flags, out));
  if (!watch.is_on() || code != kSuccess) return code;
  const KeepErrno keep;
  size_t bytes = 0;
  void* base = nullptr;
  if (ASK_REAL(Result(ZeHandle, const void*, void**, size_t*), zeMemGetAddressRange, context, *out,
               &base, &bytes) != kSuccess) {
    bytes = 0;
    watch->lost();
  }
  took_on(watch, code, kDriverImported, out, bytes, device);
  return code;
}

DRIVER_EXPORT Result zeMemCloseIpcHandle(ZeHandle context, const void* address) {
  WATCH();
  watch.gives(1u << kDriverImported, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeMemCloseIpcHandle, context, address));
  watch.gave(in_common(code));
  return code;
}
