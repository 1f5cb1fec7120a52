// What the files of the fake libze_loader.so.1 share.
#pragma once

#include "../cuda/driver.h"

#define FAKE_ZE extern "C" __attribute__((visibility("default")))

extern "C" {
int cuDevicePrimaryCtxRetain(fake_cuda::Context**, int);
int cuCtxSetCurrent(fake_cuda::Context*);
}

namespace fake_ze {

using namespace fake_cuda;

enum ZeCode : int {
  kOutOfDeviceMemory = 0x70000003,
  kUnsupportedFeature = 0x78000003,
  kInvalidArgument = 0x78000004,
};
inline int in_ze(Result code) {
  if (code == kSuccess) return 0;
  return code == kOutOfMemory ? int{kOutOfDeviceMemory} : int{kInvalidArgument};
}

/// A device's handle is the address of one of these.
extern char g_devices[fake_gpu::kMostDevices];

inline bool on(const void* device) {
  const auto number = static_cast<const char*>(device) - g_devices;
  Context* context = nullptr;
  return number >= 0 && cuDevicePrimaryCtxRetain(&context, int(number)) == kSuccess &&
         cuCtxSetCurrent(context) == kSuccess;
}

/// ze_base_desc_t
struct BaseDesc {
  uint32_t stype;
  const BaseDesc* pNext;
};
inline constexpr uint32_t kImportFd = 0x19;
inline bool has_next(const void* desc, uint32_t stype) {
  if (!desc) return false;
  for (auto at = static_cast<const BaseDesc*>(desc)->pNext; at; at = at->pNext)
    if (at->stype == stype) return true;
  return false;
}

}  // namespace fake_ze
