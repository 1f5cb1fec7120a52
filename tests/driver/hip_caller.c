// A library that is linked to HIP's run time, with versions of its symbols, as PyTorch's and RCCL are; built under the
// names of several. Each function calls one of HIP's and answers what it answered.
#include <errno.h>
#include <string.h>

struct Handle {
  char bytes[64];
};

#define CALL(name)                                               \
  int name();                                                    \
  int call_##name(const long* a) {                               \
    int code = name(a[0], a[1], a[2], a[3], a[4], a[5]);         \
    return code; /* no tail call: the return address lies here */ \
  }
CALL(hipInit)
CALL(hipSetDevice)
CALL(hipMalloc)
CALL(hipExtMallocWithFlags)
CALL(hipMallocPitch)
CALL(hipMemAllocPitch)
CALL(hipFree)
CALL(hipMallocManaged)
CALL(hipHostMalloc)
CALL(hipHostFree)
CALL(hipHostRegister)
CALL(hipHostUnregister)
CALL(hipMemGetInfo)
CALL(hipIpcCloseMemHandle)
CALL(hipMallocAsync)
CALL(hipFreeAsync)
CALL(hipStreamSynchronize)
CALL(hipStreamSynchronize_spt)
CALL(hipEventSynchronize)
CALL(hipDeviceSynchronize)
CALL(hipMemCreate)
CALL(hipMemRelease)
CALL(hipMemMap)
CALL(hipMemUnmap)
CALL(hipMemAddressReserve)
CALL(hipMemAddressFree)
CALL(hipModuleLoadData)
CALL(hipModuleUnload)
CALL(hipMallocArray)
CALL(hipFreeArray)
CALL(hipFreeMipmappedArray)
CALL(hipArrayCreate)
CALL(hipArray3DCreate)
CALL(hipArrayDestroy)
CALL(hipMipmappedArrayCreate)
CALL(hipMipmappedArrayDestroy)
CALL(hipGraphCreate)
CALL(hipGraphAddMemAllocNode)
CALL(hipGraphAddNode)
CALL(hipGraphInstantiateWithFlags)
CALL(hipGraphLaunch)
CALL(hipGraphLaunch_spt)
CALL(hipDeviceGraphMemTrim)
CALL(hipOfTomorrow)

int hipIpcOpenMemHandle(long* out, struct Handle handle, unsigned flags);
int open_imported(long* out, long pid, long size) {
  const long words[3] = {pid, 0, size};
  struct Handle handle;
  memset(&handle, 0, sizeof handle);
  memcpy(&handle, words, sizeof words);
  int code = hipIpcOpenMemHandle(out, handle, 1);
  return code;
}

/// What HIP takes by value, and so on the stack.
struct Extent {
  unsigned long width, height, depth;
};
int hipMalloc3D(long* out, struct Extent extent);
int hipMalloc3DArray(long* out, const int* channels, struct Extent extent, unsigned flags);
int hipMallocMipmappedArray(long* out, const int* channels, struct Extent extent, unsigned levels, unsigned flags);
int malloc_3d(long* out, long width, long height, long depth) {
  struct Extent extent = {width, height, depth};
  int code = hipMalloc3D(out, extent);
  return code;
}
int malloc_3d_array(long* out, const int* channels, long width, long height, long depth, unsigned flags) {
  struct Extent extent = {width, height, depth};
  int code = hipMalloc3DArray(out, channels, extent, flags);
  return code;
}
int malloc_mipmapped(long* out, const int* channels, long width, long height, unsigned levels) {
  struct Extent extent = {width, height, 0};
  int code = hipMallocMipmappedArray(out, channels, extent, levels, 0);
  return code;
}

/// errno after a call, having been 77 before it.
int errno_after_malloc(long* out, long bytes) {
  const long a[6] = {(long)out, bytes};
  errno = 77;
  call_hipMalloc(a);
  return errno;
}
