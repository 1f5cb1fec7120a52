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
CALL(hipDeviceSynchronize)
CALL(hipMemCreate)
CALL(hipMemRelease)
CALL(hipMemMap)
CALL(hipMemUnmap)
CALL(hipMemAddressReserve)
CALL(hipMemAddressFree)
CALL(hipModuleLoadData)
CALL(hipModuleUnload)
CALL(hipOfTomorrow)

int hipIpcOpenMemHandle(long* out, struct Handle handle, unsigned flags);
int open_imported(long* out, long pid) {
  struct Handle handle;
  memset(&handle, 0, sizeof handle);
  memcpy(&handle, &pid, sizeof pid);
  int code = hipIpcOpenMemHandle(out, handle, 1);
  return code;
}

/// errno after a call, having been 77 before it.
int errno_after_malloc(long* out, long bytes) {
  const long a[6] = {(long)out, bytes};
  errno = 77;
  call_hipMalloc(a);
  return errno;
}
