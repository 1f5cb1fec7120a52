// A libamdhip64.so.6 of our own, by the documented interface and with versions of its symbols, over
// the same machine as the fake driver of CUDA: what that one does, under HIP's names. Arrays and
// graphs are in arrays.cc.
#include <cstdio>
#include <cstring>

#include "as_cuda.h"

using namespace fake_hip;

struct Prop {
  int type, handles, place, number;
};
struct IpcHandle {
  char bytes[64];
};
extern "C" {
Result cuDeviceGetCount(int*);
Result cuDeviceGetAttribute(int*, int, int);
Result cuMemAlloc_v2(Pointer*, size_t);
Result cuMemAllocPitch_v2(Pointer*, size_t*, size_t, size_t, unsigned);
Result cuMemGetAddressRange_v2(Pointer*, size_t*, Pointer);
Result cuMemFree_v2(Pointer);
Result cuMemAllocManaged(Pointer*, size_t, unsigned);
Result cuMemHostAlloc(void**, size_t, unsigned);
Result cuMemFreeHost(void*);
Result cuMemHostRegister_v2(void*, size_t, unsigned);
Result cuMemHostUnregister(void*);
Result cuMemGetInfo_v2(size_t*, size_t*);
Result cuIpcOpenMemHandle_v2(Pointer*, IpcHandle, unsigned);
Result cuIpcCloseMemHandle(Pointer);
Result cuMemAllocAsync(Pointer*, size_t, void*);
Result cuMemFreeAsync(Pointer, void*);
Result cuStreamSynchronize(void*);
Result cuCtxSynchronize();
Result cuDeviceGetDefaultMemPool(Pointer*, int);
Result cuDeviceGetMemPool(Pointer*, int);
Result cuMemPoolGetAttribute(Pointer, int, void*);
Result cuMemCreate(Pointer*, size_t, const Prop*, unsigned long long);
Result cuMemRelease(Pointer);
Result cuMemMap(Pointer, size_t, size_t, Pointer, unsigned long long);
Result cuMemUnmap(Pointer, size_t);
Result cuMemAddressReserve(Pointer*, size_t, size_t, Pointer, unsigned long long);
Result cuMemAddressFree(Pointer, size_t);
Result cuModuleLoadData(void**, const void*);
Result cuModuleUnload(void*);
}

FAKE_HIP int hipInit(unsigned) { return begin() ? kSuccess : kNoDevice; }
FAKE_HIP int hipGetDeviceCount(int* count) { return as_cuda(cuDeviceGetCount, count); }
FAKE_HIP int hipGetDevice(int* device) { return begin() ? current_device(device) : int{kNoDevice}; }
FAKE_HIP int hipSetDevice(int device) {
  Context* context = nullptr;
  if (cuInit(0) != kSuccess) return kNoDevice;
  const Result code = cuDevicePrimaryCtxRetain(&context, device);
  return code ? code : cuCtxSetCurrent(context);
}
FAKE_HIP int hipDeviceGetPCIBusId(char* text, int length, int device) {
  int domain = 0, bus = 0, number = 0;
  if (const Result code = as_cuda(cuDeviceGetAttribute, &bus, 33, device)) return code;
  cuDeviceGetAttribute(&number, 34, device), cuDeviceGetAttribute(&domain, 50, device);
  std::snprintf(text, size_t(length), "%04x:%02x:%02x.0", domain, bus, number);
  return kSuccess;
}
FAKE_HIP int hipMalloc(Pointer* out, size_t bytes) {
  if (bytes == 0) return *out = 0, kSuccess;
  return as_cuda(cuMemAlloc_v2, out, bytes);
}
FAKE_HIP int hipExtMallocWithFlags(Pointer* out, size_t bytes, unsigned) {
  return as_cuda(cuMemAlloc_v2, out, bytes);
}
FAKE_HIP int hipMallocPitch(Pointer* out, size_t* pitch, size_t width, size_t height) {
  return as_cuda(cuMemAllocPitch_v2, out, pitch, width, height, 4u);
}
FAKE_HIP int hipMemAllocPitch(Pointer* out, size_t* pitch, size_t width, size_t height,
                              unsigned element) {
  return as_cuda(cuMemAllocPitch_v2, out, pitch, width, height, element);
}
FAKE_HIP int hipFree(Pointer address) { return as_cuda(cuMemFree_v2, address); }
FAKE_HIP int hipMallocManaged(Pointer* out, size_t bytes, unsigned flags) {
  return as_cuda(cuMemAllocManaged, out, bytes, flags);
}
FAKE_HIP int hipHostMalloc(void** out, size_t bytes, unsigned flags) {
  return as_cuda(cuMemHostAlloc, out, bytes, flags);
}
FAKE_HIP int hipHostFree(void* address) { return as_cuda(cuMemFreeHost, address); }
FAKE_HIP int hipHostRegister(void* address, size_t bytes, unsigned flags) {
  return as_cuda(cuMemHostRegister_v2, address, bytes, flags);
}
FAKE_HIP int hipHostUnregister(void* address) { return as_cuda(cuMemHostUnregister, address); }
FAKE_HIP int hipMemGetInfo(size_t* free, size_t* total) {
  return as_cuda(cuMemGetInfo_v2, free, total);
}
FAKE_HIP int hipIpcOpenMemHandle(Pointer* out, IpcHandle handle, unsigned flags) {
  return as_cuda(cuIpcOpenMemHandle_v2, out, handle, flags);
}
FAKE_HIP int hipIpcCloseMemHandle(Pointer address) { return as_cuda(cuIpcCloseMemHandle, address); }
FAKE_HIP int hipMemGetAddressRange(Pointer* base, size_t* bytes, Pointer address) {
  return as_cuda(cuMemGetAddressRange_v2, base, bytes, address);
}
FAKE_HIP int hipMallocAsync(Pointer* out, size_t bytes, void* stream) {
  return as_cuda(cuMemAllocAsync, out, bytes, stream);
}
FAKE_HIP int hipFreeAsync(Pointer address, void* stream) {
  return as_cuda(cuMemFreeAsync, address, stream);
}
FAKE_HIP int hipStreamSynchronize(void* stream) { return as_cuda(cuStreamSynchronize, stream); }
FAKE_HIP int hipStreamSynchronize_spt(void* stream) { return hipStreamSynchronize(stream); }
FAKE_HIP int hipEventSynchronize(void*) { return hipStreamSynchronize(nullptr); }
FAKE_HIP int hipDeviceSynchronize() { return as_cuda(cuCtxSynchronize); }
FAKE_HIP int hipDeviceGetDefaultMemPool(Pointer* pool, int device) {
  return as_cuda(cuDeviceGetDefaultMemPool, pool, device);
}
FAKE_HIP int hipDeviceGetMemPool(Pointer* pool, int device) {
  return as_cuda(cuDeviceGetMemPool, pool, device);
}
FAKE_HIP int hipMemPoolGetAttribute(Pointer pool, int attribute, void* value) {
  return as_cuda(cuMemPoolGetAttribute, pool, attribute, value);
}
FAKE_HIP int hipMemCreate(Pointer* out, size_t bytes, const Prop* prop, unsigned long long flags) {
  return as_cuda(cuMemCreate, out, bytes, prop, flags);
}
FAKE_HIP int hipMemRelease(Pointer handle) { return as_cuda(cuMemRelease, handle); }
FAKE_HIP int hipMemMap(Pointer address, size_t bytes, size_t offset, Pointer handle,
                       unsigned long long flags) {
  return as_cuda(cuMemMap, address, bytes, offset, handle, flags);
}
FAKE_HIP int hipMemUnmap(Pointer address, size_t bytes) {
  return as_cuda(cuMemUnmap, address, bytes);
}
FAKE_HIP int hipMemAddressReserve(Pointer* out, size_t bytes, size_t alignment, Pointer hint,
                                  unsigned long long flags) {
  return as_cuda(cuMemAddressReserve, out, bytes, alignment, hint, flags);
}
FAKE_HIP int hipMemAddressFree(Pointer address, size_t bytes) {
  return as_cuda(cuMemAddressFree, address, bytes);
}
FAKE_HIP int hipModuleLoadData(void** out, const void* image) {
  return as_cuda(cuModuleLoadData, out, image);
}
FAKE_HIP int hipModuleUnload(void* module) { return as_cuda(cuModuleUnload, module); }
/// One that nobody has heard of.
FAKE_HIP int hipOfTomorrow(int a, int b) { return 1000 * a + b; }
