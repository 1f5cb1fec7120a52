// What the recording asks of HIP's run time beside the program's own calls.
#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {
namespace {

/// The hexadecimal number at `*at`, which is moved behind it. By hand: newer C libraries give
/// strtoul another name, which older ones do not have.
uint32_t take_hex(const char** at) {
  uint32_t value = 0;
  for (;; ++*at) {
    const char c = **at;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0 || value > 0xfffffff) return value;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
}

}  // namespace

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
uint64_t ask_place(int device) {
  const KeepErrno keep;
  char text[32] = "";
  if (ASK_REAL(Result(char*, int, int), hipDeviceGetPCIBusId, text, int{sizeof text - 1}, device) ==
      kSuccess) {
    constexpr uint32_t kNone = 256;
    const char* at = text;
    const uint32_t domain = take_hex(&at);
    const uint32_t bus = *at == ':' ? take_hex((++at, &at)) : kNone;
    const uint32_t number = *at == ':' ? take_hex((++at, &at)) : kNone;
    if (domain <= 0xffff && bus <= 0xff && number <= 0x1f) return place_key(domain, bus, number);
  }
  return 0;
}

BesideCapture::BesideCapture()
    : is_on_(ASK_REAL(Result(int*), hipThreadExchangeStreamCaptureMode, &mode_) == kSuccess) {}
BesideCapture::~BesideCapture() {
  if (is_on_) ASK_REAL(Result(int*), hipThreadExchangeStreamCaptureMode, &mode_);
}

}  // namespace gpumemprof::driver_proxy
