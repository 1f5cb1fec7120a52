// One call of the program's into the driver, and what is told of it. Everything here is for the
// call alone: no lock, no memory of its own but a depth a thread.
#pragma once

#include "driver_proxy/real.h"
#include "probe/driver_link.h"

namespace gpumemprof::driver_proxy {

using probe::DriverKind;
using probe::DriverLink;

/// The probe's functions; null where no probe is loaded beside us.
const DriverLink* driver_link();

/// CUDA's number of the device of the calling thread's context; -1 where there is none.
int device_now();
/// What the device of the calling thread's context has in use, by everybody. False where there is
/// none.
bool used_now(uint64_t* bytes);

// Keys for per-device singletons that cannot collide with real pointers.
inline uint64_t graphs_key(int device) { return 0x100 + static_cast<uint64_t>(device); }
inline uint64_t primary_key(int device) { return 0x300 + static_cast<uint64_t>(device); }
/// Key of a limit of a context, whose pointer is a multiple of 16. Bit 47, which a recorded address
/// may have, is never set in an address of the program.
inline constexpr int kMostLimits = 62;
inline uint64_t limit_key(void* context, int limit) {
  const uint64_t number = reinterpret_cast<uint64_t>(context) / 16 * 64;
  return uint64_t{1} << 47 | ((number + static_cast<uint64_t>(limit)) & ((uint64_t{1} << 47) - 1));
}

/// Key of a device's use: its PCI address (domain, bus, device), by which a reader finds the device
/// in NVML, whose order differs. Limits never use slot 63, so the key is unique.
inline constexpr uint64_t place_key(uint32_t domain, uint32_t bus, uint32_t device) {
  return uint64_t{1} << 47 | (uint64_t{domain} << 16 | bus << 8 | device << 3) << 6 | 63;
}
/// The place_key of a device; 0 where the driver does not tell its place. Asked once a device.
uint64_t ask_place(int device);

class Watch {
 public:
  /// `caller`: where the program's call returns to.
  explicit Watch(const void* caller);
  ~Watch();
  Watch(const Watch&) = delete;

  /// False inside another call of the driver's own, and where nothing is recorded.
  bool is_on() const { return link_ != nullptr; }
  const void* caller() const { return caller_; }

  /// After an allocation: `code` is what it answered, `*key` what it made, read only where it
  /// succeeded.
  void took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes, int device);
  void took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes);
  /// Before something is given back: one of `kinds`, as bits.
  void gives(uint32_t kinds, Pointer key);
  /// After it: where the driver refused to take it, it stays the block of who took it first.
  void gave(Result code);
  void level(DriverKind kind, int device, uint64_t key, bool (*read)(uint64_t, uint64_t*));
  /// What the device says is in use by now, of the calling thread's context.
  void level_used();

  const DriverLink* operator->() const { return link_; }

 private:
  const DriverLink* link_ = nullptr;
  const void* caller_;
  DriverLink::Gone gone_{probe::kDriverKinds, -1, 0, nullptr};
  Pointer gone_key_ = 0;
};

/// While a stream of the program is being captured into a graph, some calls of whatever thread
/// would end the capture. Ours are no part of it: within this scope the thread's calls are let
/// through, as the driver provides.
class BesideCapture {
 public:
  BesideCapture();
  ~BesideCapture();
  BesideCapture(const BesideCapture&) = delete;

 private:
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; later what it was before
  bool is_on_;
};

/// Asks what all pools that were used have reserved by now, and the graphs of the device.
void read_pools_again(Watch& watch, int device);

/// Keeps errno as the driver left it: declared after the real call.
class KeepErrno {
 public:
  KeepErrno();
  ~KeepErrno();

 private:
  int saved_;
};

/// What is in use on the current context's device before a call, and how much more after it.
class Bracket {
 public:
  explicit Bracket(const Watch& watch) : is_on_(watch.is_on()) {
    const KeepErrno keep;
    is_known_ = is_on_ && used_now(&before_);
  }
  /// False where it cannot be said.
  bool growth(uint64_t* bytes) const {
    uint64_t after = 0;
    if (!is_known_ || !used_now(&after)) return false;
    *bytes = after > before_ ? after - before_ : 0;
    return true;
  }

 private:
  bool is_on_, is_known_ = false;
  uint64_t before_ = 0;
};

/// After a module was loaded: what the device has more in use than before, where that can be said.
void took_module(Watch& watch, const Bracket& bracket, Result code, const Pointer* module);

#define DRIVER_EXPORT extern "C" __attribute__((visibility("default")))
#define WATCH() gpumemprof::driver_proxy::Watch watch(__builtin_return_address(0))

}  // namespace gpumemprof::driver_proxy
