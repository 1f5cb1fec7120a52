// Level Zero's functions that are recorded. All others reach the real loader without us.
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

using Handle = void*;

/// Its codes in the words of the other drivers.
Result in_common(Result code) {
  constexpr Result kOutOfDeviceMemory = 0x70000003;
  if (code == kSuccess) return kSuccess;
  return code == kOutOfDeviceMemory ? int{kOutOfMemory} : -1;
}

/// A function that this loader lacks.
Result or_unsupported(Result code) { return code == kNotFound ? 0x78000003 : code; }

constexpr uint32_t kMost = 16;  // devices, and drivers

/// The place of a device among those of all drivers; -1 for one that is none of them, as a part of
/// a device is.
int number_of(Handle device) {
  Handle drivers[kMost], devices[kMost];
  uint32_t driver_count = kMost;
  int number = 0;
  if (ASK_REAL(Result(uint32_t*, Handle*), zeDriverGet, &driver_count, drivers) != kSuccess)
    return -1;
  for (uint32_t i = 0; i < driver_count && i < kMost; ++i) {
    uint32_t count = kMost;
    if (ASK_REAL(Result(Handle, uint32_t*, Handle*), zeDeviceGet, drivers[i], &count, devices) !=
        kSuccess)
      continue;
    for (uint32_t k = 0; k < count && k < kMost; ++k, ++number)
      if (devices[k] == device) return number;
  }
  return -1;
}

/// What the probe calls it; asked once a device. -1 where it is not known, which is counted.
int device_of(Watch& watch, Handle device) {
  if (!watch.is_on()) return -1;
  struct Known {
    Handle handle;
    int number;
  };
  static Known known[kMost];
  for (Known& one : known) {
    const Handle handle = __atomic_load_n(&one.handle, __ATOMIC_ACQUIRE);
    if (handle == device && device) return kFirstLevelZeroDevice + one.number;
    if (handle) continue;
    const KeepErrno keep;
    const int number = number_of(device);
    if (number < 0 || number >= int{kMost}) break;
    // Two that come at once write the same or leave a place with a number that nobody asks for.
    Handle nobody = nullptr;
    if (__atomic_compare_exchange_n(&one.handle, &nobody, reinterpret_cast<Handle>(1), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      one.number = number;
      __atomic_store_n(&one.handle, device, __ATOMIC_RELEASE);
    }
    return kFirstLevelZeroDevice + number;
  }
  watch->lost();
  return -1;
}

void took(Watch& watch, Result code, DriverKind kind, void* const* out, size_t bytes, Handle on) {
  if (!watch.is_on() || (code != kSuccess && in_common(code) != kOutOfMemory)) return;
  const int device = on ? device_of(watch, on) : 0;
  if (device >= 0)
    watch.took(in_common(code), kind, reinterpret_cast<const Pointer*>(out), bytes, device);
}

constexpr uint32_t kAny = 1u << kDriverMemory | 1u << kDriverManaged | 1u << kDriverPinned;

Pointer key_of(const void* address) { return reinterpret_cast<Pointer>(address); }

}  // namespace

DRIVER_EXPORT Result zeMemAllocDevice(Handle context, const void* desc, size_t bytes,
                                      size_t alignment, Handle device, void** out) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeMemAllocDevice, context, desc, bytes, alignment, device, out));
  took(watch, code, kDriverMemory, out, bytes, device);
  return code;
}

/// It lies where who touches it is.
DRIVER_EXPORT Result zeMemAllocShared(Handle context, const void* device_desc,
                                      const void* host_desc, size_t bytes, size_t alignment,
                                      Handle device, void** out) {
  WATCH();
  const Result code = or_unsupported(
      CALL_REAL(zeMemAllocShared, context, device_desc, host_desc, bytes, alignment, device, out));
  // Without a device any may have it: counted with the first.
  const int number = device ? -1 : kFirstLevelZeroDevice;
  if (device)
    took(watch, code, kDriverManaged, out, bytes, device);
  else
    watch.took(in_common(code), kDriverManaged, reinterpret_cast<const Pointer*>(out), bytes,
               number);
  return code;
}

DRIVER_EXPORT Result zeMemAllocHost(Handle context, const void* desc, size_t bytes,
                                    size_t alignment, void** out) {
  WATCH();
  const Result code =
      or_unsupported(CALL_REAL(zeMemAllocHost, context, desc, bytes, alignment, out));
  took(watch, code, kDriverPinned, out, bytes, nullptr);
  return code;
}

DRIVER_EXPORT Result zeMemFree(Handle context, void* address) {
  WATCH();
  watch.gives(kAny, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeMemFree, context, address));
  watch.gave(in_common(code));
  return code;
}

DRIVER_EXPORT Result zeMemFreeExt(Handle context, const void* desc, void* address) {
  WATCH();
  watch.gives(kAny, key_of(address));
  const Result code = or_unsupported(CALL_REAL(zeMemFreeExt, context, desc, address));
  watch.gave(in_common(code));
  return code;
}

/// ze_physical_mem_desc_t
struct PhysicalDesc {
  uint32_t type;
  const void* next;
  uint32_t flags;
  size_t bytes;
};
constexpr uint32_t kOnHost = 2;  // ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST

DRIVER_EXPORT Result zePhysicalMemCreate(Handle context, Handle device, PhysicalDesc* desc,
                                         Pointer* out) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zePhysicalMemCreate, context, device, desc, out));
  if (!watch.is_on() || !desc || desc->flags & kOnHost) return code;
  const int number = device_of(watch, device);
  const KeepErrno keep;
  if (number >= 0 && in_common(code) == kOutOfMemory)
    watch->refused(kDriverHandles, number, desc->bytes, watch.caller());
  if (number >= 0 && code == kSuccess)
    watch->created(*out, number, desc->bytes, true, watch.caller());
  return code;
}

DRIVER_EXPORT Result zePhysicalMemDestroy(Handle context, Pointer handle) {
  WATCH();
  if (watch.is_on()) {
    const KeepErrno keep;
    watch->released(handle);
  }
  return or_unsupported(CALL_REAL(zePhysicalMemDestroy, context, handle));
}

DRIVER_EXPORT Result zeVirtualMemMap(Handle context, void* address, size_t bytes, Pointer handle,
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

DRIVER_EXPORT Result zeVirtualMemUnmap(Handle context, void* address, size_t bytes) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zeVirtualMemUnmap, context, address, bytes));
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    watch->unmapped(key_of(address), bytes);
  }
  return code;
}
