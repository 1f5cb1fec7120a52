// A library that is linked to Level Zero's loader, as PyTorch's run time for XPUs is; built under the names of several.
#include <string.h>

#define CALL(name)                                               \
  int name();                                                    \
  int call_##name(const long* a) {                               \
    int code = name(a[0], a[1], a[2], a[3], a[4], a[5]);         \
    return code; /* no tail call: the return address lies here */ \
  }
CALL(zeInit)
CALL(zeDriverGet)
CALL(zeDeviceGet)
CALL(zeContextCreate)
CALL(zeMemAllocDevice)
CALL(zeMemAllocHost)
CALL(zeMemFree)
CALL(zePhysicalMemCreate)
CALL(zePhysicalMemDestroy)
CALL(zeVirtualMemReserve)
CALL(zeVirtualMemMap)
CALL(zeVirtualMemUnmap)
CALL(zeVirtualMemFree)
CALL(zeMemFreeExt)
CALL(zeMemCloseIpcHandle)
CALL(zeImageCreate)
CALL(zeImageDestroy)
CALL(zeOfTomorrow)

/// Seven arguments: the last on the stack.
int zeMemAllocShared(long, long, long, long, long, long, long*);
int shared(long device, long bytes, long* out) {
  int code = zeMemAllocShared(0, 0, 0, bytes, 64, device, out);
  return code;
}

/// By value, and so on the stack.
struct Handle {
  char bytes[64];
};
int zeMemOpenIpcHandle(long context, long device, struct Handle handle, unsigned flags, long* out);
int open_imported(long device, long pid, long size, long* out) {
  const long words[3] = {pid, 0, size};
  struct Handle handle;
  memset(&handle, 0, sizeof handle);
  memcpy(&handle, words, sizeof words);
  int code = zeMemOpenIpcHandle(0, device, handle, 0, out);
  return code;
}
