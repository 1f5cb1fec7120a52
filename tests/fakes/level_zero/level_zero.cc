// A libze_loader.so.1 of our own, by the documented interface, over the same machine as the other
// fakes: one driver whose devices are the machine's. Images are in images.cc.
#include "as_ze.h"

using namespace fake_ze;

struct Prop {
  int type, handles, place, number;
};
struct PhysicalDesc {
  uint32_t type;
  const void* next;
  uint32_t flags;
  size_t bytes;
};
struct IpcHandle {
  char bytes[64];
};
extern "C" {
Result cuInit(unsigned);
Result cuMemAlloc_v2(Pointer*, size_t);
Result cuMemFree_v2(Pointer);
Result cuMemAllocManaged(Pointer*, size_t, unsigned);
Result cuMemHostAlloc(void**, size_t, unsigned);
Result cuMemFreeHost(void*);
Result cuMemCreate(Pointer*, size_t, const Prop*, unsigned long long);
Result cuMemRelease(Pointer);
Result cuMemMap(Pointer, size_t, size_t, Pointer, unsigned long long);
Result cuMemUnmap(Pointer, size_t);
Result cuMemAddressReserve(Pointer*, size_t, size_t, Pointer, unsigned long long);
Result cuMemAddressFree(Pointer, size_t);
Result cuMemGetAddressRange_v2(Pointer*, size_t*, Pointer);
Result cuIpcOpenMemHandle_v2(Pointer*, IpcHandle, unsigned);
Result cuIpcCloseMemHandle(Pointer);
}

// Handles are addresses of these.
static char g_driver, g_context;
char fake_ze::g_devices[fake_gpu::kMostDevices];
/// Blocks and handles that were made of somebody else's memory.
static std::map<void*, size_t> g_of_others;

FAKE_ZE int zeInit(unsigned) { return in_ze(cuInit(0)); }
FAKE_ZE int zeDriverGet(uint32_t* count, void** drivers) {
  *count = 1;
  if (drivers) *drivers = &g_driver;
  return 0;
}
FAKE_ZE int zeDeviceGet(void*, uint32_t* count, void** devices) {
  const auto all = static_cast<uint32_t>(device_count());
  *count = *count == 0 || *count > all ? all : *count;
  for (uint32_t i = 0; devices && i < *count; ++i) devices[i] = &g_devices[i];
  return 0;
}
FAKE_ZE int zeContextCreate(void*, const void*, void** out) { return *out = &g_context, 0; }
FAKE_ZE int zeMemAllocDevice(void*, const void* desc, size_t bytes, size_t, void* device,
                             void** out) {
  if (has_next(desc, kImportFd)) {
    *out = reinterpret_cast<void*>(take_addresses(bytes));
    g_of_others[*out] = bytes;
    return 0;
  }
  return on(device) ? in_ze(cuMemAlloc_v2(reinterpret_cast<Pointer*>(out), bytes))
                    : kInvalidArgument;
}
FAKE_ZE int zeMemAllocShared(void*, const void*, const void*, size_t bytes, size_t, void* device,
                             void** out) {
  return on(device) ? in_ze(cuMemAllocManaged(reinterpret_cast<Pointer*>(out), bytes, 1))
                    : kInvalidArgument;
}
FAKE_ZE int zeMemAllocHost(void*, const void*, size_t bytes, size_t, void** out) {
  return on(g_devices) ? in_ze(cuMemHostAlloc(out, bytes, 0)) : kInvalidArgument;
}
FAKE_ZE int zeMemFree(void*, void* address) {
  if (g_of_others.erase(address)) return 0;
  if (cuMemFreeHost(address) == kSuccess) return 0;
  return in_ze(cuMemFree_v2(reinterpret_cast<Pointer>(address)));
}
FAKE_ZE int zeMemFreeExt(void* context, const void*, void* address) {
  return zeMemFree(context, address);
}
FAKE_ZE int zeMemGetAddressRange(void*, const void* address, void** base, size_t* bytes) {
  return in_ze(cuMemGetAddressRange_v2(reinterpret_cast<Pointer*>(base), bytes,
                                       reinterpret_cast<Pointer>(address)));
}
FAKE_ZE int zeMemOpenIpcHandle(void*, void* device, IpcHandle handle, unsigned flags, void** out) {
  if (!on(device)) return kInvalidArgument;
  return in_ze(cuIpcOpenMemHandle_v2(reinterpret_cast<Pointer*>(out), handle, flags));
}
FAKE_ZE int zeMemCloseIpcHandle(void*, const void* address) {
  return in_ze(cuIpcCloseMemHandle(reinterpret_cast<Pointer>(address)));
}
FAKE_ZE int zePhysicalMemCreate(void*, void* device, PhysicalDesc* desc, Pointer* out) {
  if (!on(device)) return kInvalidArgument;
  if (has_next(desc, kImportFd)) {
    *out = take_addresses(desc->bytes);
    g_of_others[reinterpret_cast<void*>(*out)] = desc->bytes;
    return 0;
  }
  const Prop prop = {1, 0, 1, static_cast<int>(static_cast<char*>(device) - g_devices)};
  return in_ze(cuMemCreate(out, desc->bytes, &prop, 0));
}
FAKE_ZE int zePhysicalMemDestroy(void*, Pointer handle) {
  if (g_of_others.erase(reinterpret_cast<void*>(handle))) return 0;
  return in_ze(cuMemRelease(handle));
}
FAKE_ZE int zeVirtualMemReserve(void*, const void*, size_t bytes, void** out) {
  return in_ze(cuMemAddressReserve(reinterpret_cast<Pointer*>(out), bytes, 0, 0, 0));
}
FAKE_ZE int zeVirtualMemFree(void*, const void* address, size_t bytes) {
  return in_ze(cuMemAddressFree(reinterpret_cast<Pointer>(address), bytes));
}
FAKE_ZE int zeVirtualMemMap(void*, void* address, size_t bytes, Pointer handle, size_t offset,
                            unsigned) {
  return in_ze(cuMemMap(reinterpret_cast<Pointer>(address), bytes, offset, handle, 0));
}
FAKE_ZE int zeVirtualMemUnmap(void*, void* address, size_t bytes) {
  return in_ze(cuMemUnmap(reinterpret_cast<Pointer>(address), bytes));
}
/// One that nobody has heard of.
FAKE_ZE int zeOfTomorrow(int a, int b) { return 1000 * a + b; }
