// Memory of the device, of the host, of other processes; arrays.
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

/// CUDA_ARRAY3D_DESCRIPTOR; that of two dimensions has no depth and no flags.
struct Array2d {
  size_t width, height;
  int format;
  unsigned channels;
};
struct Array3d {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
constexpr unsigned kIsCubemap = 4, kIsSparse = 0x40, kIsDeferred = 0x80;

/// Bits of an element of one channel; 0 for formats that are laid out in blocks or planes.
unsigned bits_of(int format) {
  switch (format) {
    case 0x01:
    case 0x08:
      return 8;
    case 0x02:
    case 0x09:
    case 0x10:
      return 16;
    case 0x03:
    case 0x0a:
    case 0x20:
      return 32;
    default:
      return 0;
  }
}

uint64_t bytes_of(const Array3d& d, unsigned levels) {
  if (d.flags & (kIsSparse | kIsDeferred)) return 0;  // memory is mapped into it
  uint64_t elements = 0;
  for (unsigned level = 0; level < levels && level < 32; ++level) {
    const uint64_t width = d.width >> level ? d.width >> level : 1;
    const uint64_t height = d.height ? (d.height >> level ? d.height >> level : 1) : 1;
    // The layers of an array of arrays do not get fewer.
    const bool is_layered = d.flags & 1 || d.flags & kIsCubemap;
    const uint64_t deep = is_layered ? d.depth : d.depth >> level;
    elements += width * height * (deep ? deep : 1);
  }
  return elements * d.channels * bits_of(d.format) / 8;
}

/// Of a format whose size we do not know nothing can be said but that it is there.
void took_array(Watch& watch, Result code, const Pointer* out, const Array3d& d, unsigned levels) {
  watch.took(code, kDriverArrays, out, bytes_of(d, levels));
  if (code == kSuccess && bits_of(d.format) == 0 && !(d.flags & (kIsSparse | kIsDeferred)))
    watch->lost();
}

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
    size_t bytes = 0;
    Pointer base = 0;
    if (ASK_REAL(Result(Pointer*, size_t*, Pointer), cuMemGetAddressRange_v2, &base, &bytes,
                 *out) != kSuccess) {
      bytes = 0;
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

DRIVER_EXPORT Result cuArrayCreate_v2(Pointer* out, const Array2d* d) {
  WATCH();
  const Result code = CALL_REAL(cuArrayCreate_v2, out, d);
  if (watch.is_on() && d)
    took_array(watch, code, out, {d->width, d->height, 0, d->format, d->channels, 0}, 1);
  return code;
}

DRIVER_EXPORT Result cuArray3DCreate_v2(Pointer* out, const Array3d* d) {
  WATCH();
  const Result code = CALL_REAL(cuArray3DCreate_v2, out, d);
  if (watch.is_on() && d) took_array(watch, code, out, *d, 1);
  return code;
}

DRIVER_EXPORT Result cuArrayDestroy(Pointer array) {
  WATCH();
  watch.gives(1u << kDriverArrays, array);
  const Result code = CALL_REAL(cuArrayDestroy, array);
  watch.gave(code);
  return code;
}

DRIVER_EXPORT Result cuMipmappedArrayCreate(Pointer* out, const Array3d* d, unsigned levels) {
  WATCH();
  const Result code = CALL_REAL(cuMipmappedArrayCreate, out, d, levels);
  if (watch.is_on() && d) took_array(watch, code, out, *d, levels);
  return code;
}

DRIVER_EXPORT Result cuMipmappedArrayDestroy(Pointer array) {
  WATCH();
  watch.gives(1u << kDriverArrays, array);
  const Result code = CALL_REAL(cuMipmappedArrayDestroy, array);
  watch.gave(code);
  return code;
}
