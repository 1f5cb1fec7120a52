// What the recording asks of the CUDA driver beside the program's own calls.
#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

int device_now() {
  const KeepErrno keep;
  int device = -1;
  return ASK_REAL(Result(int*), cuCtxGetDevice, &device) == kSuccess ? device : -1;
}

bool used_now(uint64_t* bytes) {
  const BesideCapture beside;
  size_t free = 0, total = 0;
  if (ASK_REAL(Result(size_t*, size_t*), cuMemGetInfo_v2, &free, &total) != kSuccess) return false;
  if (free > total) return false;
  *bytes = total - free;
  return true;
}

uint64_t ask_place(int device) {
  constexpr int kBus = 33, kDevice = 34, kDomain = 50;  // CU_DEVICE_ATTRIBUTE_PCI_…
  const auto ask = [device](int attribute, uint32_t most, uint32_t* out) {
    int value = -1;
    const Result code =
        ASK_REAL(Result(int*, int, int), cuDeviceGetAttribute, &value, attribute, device);
    *out = static_cast<uint32_t>(value);
    return code == kSuccess && value >= 0 && *out <= most;
  };
  uint32_t domain = 0, bus = 0, number = 0;
  const bool is_told =
      ask(kDomain, 0xffff, &domain) && ask(kBus, 0xff, &bus) && ask(kDevice, 0x1f, &number);
  return is_told ? place_key(domain, bus, number) : 0;
}

BesideCapture::BesideCapture()
    : is_on_(ASK_REAL(Result(int*), cuThreadExchangeStreamCaptureMode, &mode_) == kSuccess) {}
BesideCapture::~BesideCapture() {
  if (is_on_) ASK_REAL(Result(int*), cuThreadExchangeStreamCaptureMode, &mode_);
}

}  // namespace gpumemprof::driver_proxy
