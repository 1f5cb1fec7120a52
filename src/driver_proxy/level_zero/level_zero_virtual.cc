// Level Zero's physical memory, reserved addresses, and the one mapped to the other.
#include "driver_proxy/level_zero/level_zero.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// ze_physical_mem_desc_t
struct PhysicalDesc {
  uint32_t type;
  const void* next;
  uint32_t flags;
  size_t bytes;
};
constexpr uint32_t kOnHost = 2;  // ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST

}  // namespace

DRIVER_EXPORT Result zePhysicalMemCreate(ZeHandle context, ZeHandle device, PhysicalDesc* desc,
                                         Pointer* out) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zePhysicalMemCreate, context, device, desc, out));
  if (!watch.is_on() || !desc || desc->flags & kOnHost) return code;
  const int number = device_of(watch, device);
  const KeepErrno keep;
  if (number >= 0 && in_common(code) == kOutOfMemory)
    watch->refused(kDriverHandles, number, desc->bytes, watch.caller());
  if (number >= 0 && code == kSuccess)
    watch->created(*out, number, desc->bytes, !is_followed_by(desc, kImportsFd), watch.caller());
  return code;
}

DRIVER_EXPORT Result zePhysicalMemDestroy(ZeHandle context, Pointer handle) {
  WATCH();
  if (watch.is_on()) {
    const KeepErrno keep;
    watch->released(handle);
  }
  return or_unsupported(CALL_REAL(zePhysicalMemDestroy, context, handle));
}

DRIVER_EXPORT Result zeVirtualMemMap(ZeHandle context, void* address, size_t bytes, Pointer handle,
                                     size_t offset, uint32_t access) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeVirtualMemMap, context, address, bytes, handle, offset, access));
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->mapped(key_of(address), bytes, handle, watch.caller());
  }
  return code;
}

DRIVER_EXPORT Result zeVirtualMemUnmap(ZeHandle context, void* address, size_t bytes) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zeVirtualMemUnmap, context, address, bytes));
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->unmapped(key_of(address), bytes);
  }
  return code;
}

/// It is of no device: all are counted with the first. Before anything is mapped there it holds
/// nothing.
DRIVER_EXPORT Result zeVirtualMemReserve(ZeHandle context, const void* wanted, size_t bytes,
                                         void** out) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zeVirtualMemReserve, context, wanted, bytes, out));
  if (code == kSuccess)
    watch.took(code, kDriverAddressSpace, reinterpret_cast<const Pointer*>(out), bytes,
               kFirstLevelZeroDevice);
  return code;
}

DRIVER_EXPORT Result zeVirtualMemFree(ZeHandle context, const void* address, size_t bytes) {
  WATCH();
  watch.gives(1u << kDriverAddressSpace, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeVirtualMemFree, context, address, bytes));
  watch.gave(in_common(code));
  return code;
}
