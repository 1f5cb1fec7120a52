// What the recording asks of HIP's run time beside the program's own calls.
#include <stdlib.h>

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

int device_now() {
  const KeepErrno keep;
  int device = -1;
  return ASK_REAL(Result(int*), hipGetDevice, &device) == kSuccess ? device : -1;
}

bool used_now(uint64_t* bytes) {
  const BesideCapture beside;
  size_t free = 0, total = 0;
  if (ASK_REAL(Result(size_t*, size_t*), hipMemGetInfo, &free, &total) != kSuccess) return false;
  if (free > total) return false;
  *bytes = total - free;
  return true;
}

/// Attributes have other numbers in each release; the text, "0000:03:00.0", is the same in all.
uint64_t used_key(int device) {
  const KeepErrno keep;
  constexpr int kMostDevices = 64;
  static uint64_t known[kMostDevices];
  const uint64_t unknown = 0x200 + static_cast<uint64_t>(device);
  if (device < 0 || device >= kMostDevices) return unknown;
  uint64_t key = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (key) return key;
  char text[32] = "";
  key = unknown;
  if (ASK_REAL(Result(char*, int, int), hipDeviceGetPCIBusId, text, int{sizeof text - 1}, device) ==
      kSuccess) {
    char* end = text;
    const unsigned long domain = strtoul(text, &end, 16);
    const unsigned long bus = *end == ':' ? strtoul(end + 1, &end, 16) : 256;
    const unsigned long number = *end == ':' ? strtoul(end + 1, &end, 16) : 256;
    if (domain <= 0xffff && bus <= 0xff && number <= 0x1f)
      key = place_key(static_cast<uint32_t>(domain), static_cast<uint32_t>(bus),
                      static_cast<uint32_t>(number));
  }
  __atomic_store_n(&known[device], key, __ATOMIC_RELAXED);
  return key;
}

BesideCapture::BesideCapture()
    : is_on_(ASK_REAL(Result(int*), hipThreadExchangeStreamCaptureMode, &mode_) == kSuccess) {}
BesideCapture::~BesideCapture() {
  if (is_on_) ASK_REAL(Result(int*), hipThreadExchangeStreamCaptureMode, &mode_);
}

}  // namespace gpumemprof::driver_proxy
