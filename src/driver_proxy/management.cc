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

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

bool used_by_management(int device, uint64_t* bytes) {
  char uuid[41];
  if (!dlopen || !dlsym || !uuid_text(device, uuid)) return false;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  auto* begin = find<int()>(library, "nvmlInit_v2");
  auto* end = find<int()>(library, "nvmlShutdown");
  auto* handle_of = find<int(const char*, void**)>(library, "nvmlDeviceGetHandleByUUID");
  auto* memory_of = find<int(void*, Memory*)>(library, "nvmlDeviceGetMemoryInfo");
  if (!begin || !end || !handle_of || !memory_of || begin() != 0) return false;
  void* handle = nullptr;
  Memory memory{};
  const bool is_known = handle_of(uuid, &handle) == 0 && memory_of(handle, &memory) == 0;
  end();
  *bytes = memory.used;
  return is_known;
}

}  // namespace gpumemprof::driver_proxy
