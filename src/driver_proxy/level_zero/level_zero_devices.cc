// Level Zero's devices by their numbers, its codes and its descriptors.
#include "driver_proxy/level_zero/level_zero.h"

namespace gpumemprof::driver_proxy {
namespace {

constexpr uint32_t kMost = 16;  // devices, and drivers

/// The place of a device among those of all drivers; -1 for one that is none of them, as a part of
/// a device is.
int number_of(ZeHandle device) {
  ZeHandle drivers[kMost], devices[kMost];
  uint32_t driver_count = kMost;
  int number = 0;
  if (ASK_REAL(Result(uint32_t*, ZeHandle*), zeDriverGet, &driver_count, drivers) != kSuccess)
    return -1;
  for (uint32_t i = 0; i < driver_count && i < kMost; ++i) {
    uint32_t count = kMost;
    if (ASK_REAL(Result(ZeHandle, uint32_t*, ZeHandle*), zeDeviceGet, drivers[i], &count,
                 devices) != kSuccess)
      continue;
    for (uint32_t k = 0; k < count && k < kMost; ++k, ++number)
      if (devices[k] == device) return number;
  }
  return -1;
}

/// What descriptors begin with, and what follows them.
struct Described {
  uint32_t type;
  const Described* next;
};

}  // namespace

Result in_common(Result code) {
  constexpr Result kOutOfDeviceMemory = 0x70000003;
  if (code == kSuccess) return kSuccess;
  return code == kOutOfDeviceMemory ? int{kOutOfMemory} : -1;
}

Result or_unsupported(Result code) { return code == kNotFound ? 0x78000003 : code; }

/// Asked once a device.
int device_of(Watch& watch, ZeHandle device) {
  if (!watch.is_on()) return -1;
  struct Known {
    ZeHandle handle;
    int number;
  };
  static Known known[kMost];
  for (Known& one : known) {
    const ZeHandle handle = __atomic_load_n(&one.handle, __ATOMIC_ACQUIRE);
    if (handle == device && device) return probe::kFirstLevelZeroDevice + one.number;
    if (handle) continue;
    const KeepErrno keep;
    const int number = number_of(device);
    if (number < 0 || number >= int{kMost}) break;
    // Two threads at once write the same, or leave an entry with a number that is never looked up.
    ZeHandle nobody = nullptr;
    if (__atomic_compare_exchange_n(&one.handle, &nobody, reinterpret_cast<ZeHandle>(1), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      one.number = number;
      __atomic_store_n(&one.handle, device, __ATOMIC_RELEASE);
    }
    return probe::kFirstLevelZeroDevice + number;
  }
  watch->lost();
  return -1;
}

void took_on(Watch& watch, Result code, probe::DriverKind kind, void* const* out,
             uint64_t size_bytes, ZeHandle device) {
  if (!watch.is_on() || (code != kSuccess && in_common(code) != kOutOfMemory)) return;
  const int number = device ? device_of(watch, device) : 0;
  if (number >= 0)
    watch.took(in_common(code), kind, reinterpret_cast<const Pointer*>(out), size_bytes, number);
}

bool is_followed_by(const void* desc, uint32_t type) {
  constexpr int kMostLinks = 16;
  const auto* one = static_cast<const Described*>(desc);
  for (int i = 0; one && i < kMostLinks; ++i) {
    one = one->next;
    if (one && one->type == type) return true;
  }
  return false;
}

}  // namespace gpumemprof::driver_proxy
