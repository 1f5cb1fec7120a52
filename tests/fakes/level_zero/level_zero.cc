// A libze_loader.so.1 of our own, by the documented interface, over the same machine as the other
// fakes: one driver whose devices are the machine's.
#include "../cuda/driver.h"

#define FAKE_ZE extern "C" __attribute__((visibility("default")))

using namespace fake_cuda;

struct Prop {
  int type, handles, place, number;
};
struct PhysicalDesc {
  uint32_t type;
  const void* next;
  uint32_t flags;
  size_t bytes;
};
extern "C" {
Result cuInit(unsigned);
Result cuDevicePrimaryCtxRetain(Context**, int);
Result cuCtxSetCurrent(Context*);
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
}

constexpr int kOutOfDeviceMemory = 0x70000003, kInvalidArgument = 0x78000004;
static int in_ze(Result code) {
  if (code == kSuccess) return 0;
  return code == kOutOfMemory ? kOutOfDeviceMemory : kInvalidArgument;
}

// Handles are addresses of these.
static char g_driver, g_context, g_devices[fake_gpu::kMostDevices];

static bool on(const void* device) {
  const auto number = static_cast<const char*>(device) - g_devices;
  Context* context = nullptr;
  return number >= 0 && cuDevicePrimaryCtxRetain(&context, int(number)) == kSuccess &&
         cuCtxSetCurrent(context) == kSuccess;
}

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
FAKE_ZE int zeMemAllocDevice(void*, const void*, size_t bytes, size_t, void* device, void** out) {
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
  if (cuMemFreeHost(address) == kSuccess) return 0;
  return in_ze(cuMemFree_v2(reinterpret_cast<Pointer>(address)));
}
FAKE_ZE int zePhysicalMemCreate(void*, void* device, PhysicalDesc* desc, Pointer* out) {
  if (!on(device)) return kInvalidArgument;
  const Prop prop = {1, 0, 1, static_cast<int>(static_cast<char*>(device) - g_devices)};
  return in_ze(cuMemCreate(out, desc->bytes, &prop, 0));
}
FAKE_ZE int zePhysicalMemDestroy(void*, Pointer handle) { return in_ze(cuMemRelease(handle)); }
FAKE_ZE int zeVirtualMemReserve(void*, const void*, size_t bytes, void** out) {
  return in_ze(cuMemAddressReserve(reinterpret_cast<Pointer*>(out), bytes, 0, 0, 0));
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
