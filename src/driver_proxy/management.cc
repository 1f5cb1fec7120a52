#include "driver_proxy/management.h"

#include "driver_proxy/real.h"
#include "probe/dynamic.h"

namespace gpumemprof::driver_proxy {
namespace {

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

/// "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", as NVML names the device.
bool uuid_text(int device, char out[41]) {
  unsigned char uuid[16];
  if (ASK_REAL(Result(unsigned char*, int), cuDeviceGetUuid, uuid, device) != kSuccess)
    return false;
  static const char kDigits[] = "0123456789abcdef";
  char* at = out;
  for (const char* c = "GPU-"; *c; ++c) *at++ = *c;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    *at++ = kDigits[uuid[i] >> 4];
    *at++ = kDigits[uuid[i] & 15];
  }
  *at = 0;
  return true;
}

/// "00000000:3B:00.0", as NVML names its place.
bool place_text(int device, char out[41]) {
  return ASK_REAL(Result(char*, int, int), cuDeviceGetPCIBusId, out, 41, device) == kSuccess;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

bool used_by_management(int device, uint64_t* bytes) {
  char name[41];
  if (!dlopen || !dlsym) return false;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  auto* begin = find<int()>(library, "nvmlInit_v2");
  auto* end = find<int()>(library, "nvmlShutdown");
  auto* by_uuid = find<int(const char*, void**)>(library, "nvmlDeviceGetHandleByUUID");
  auto* by_place = find<int(const char*, void**)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  auto* memory_of = find<int(void*, Memory*)>(library, "nvmlDeviceGetMemoryInfo");
  if (!begin || !end || !by_uuid || !memory_of || begin() != 0) return false;
  void* handle = nullptr;
  Memory memory{};
  const bool has_handle = (uuid_text(device, name) && by_uuid(name, &handle) == 0) ||
                          (by_place && place_text(device, name) && by_place(name, &handle) == 0);
  const bool is_known = has_handle && memory_of(handle, &memory) == 0;
  end();
  *bytes = memory.used;
  return is_known;
}

}  // namespace gpumemprof::driver_proxy
