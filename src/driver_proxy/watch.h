// One call from the program into the driver, and its report. Everything here is local to the call:
// no lock, and no memory except a depth per thread.
#pragma once

#include "driver_proxy/real.h"
#include "probe/driver_link.h"

namespace gpumemprof::driver_proxy {

using probe::DriverKind;
using probe::DriverLink;

/// The probe's functions; null if no probe is loaded.
const DriverLink* driver_link();

/// CUDA's number of the device of the calling thread's context; -1 without a context.
int device_now();
/// The used memory of the device of the calling thread's context, over all processes. False without
/// a context.
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
/// The place_key of a device; 0 if the driver does not report its PCI address. Queried once per
/// device.
uint64_t ask_place(int device);

class Watch {
 public:
  /// `caller`: the return address of the program's call.
  explicit Watch(const void* caller);
  ~Watch();
  Watch(const Watch&) = delete;

  /// False inside a call by the driver itself, and if nothing is recorded.
  bool is_on() const { return link_ != nullptr; }
  const void* caller() const { return caller_; }

  /// After an allocation: `code` is its result, `*key` what it made, read only on success.
  void took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes, int device);
  void took(Result code, DriverKind kind, const Pointer* key, uint64_t size_bytes);
  /// Before something is freed: one of `kinds`, as bits.
  void gives(uint32_t kinds, Pointer key);
  /// Afterwards: if the driver refused to free it, it remains the block of the library that
  /// allocated it.
  void gave(Result code);
  void level(DriverKind kind, int device, uint64_t key, bool (*read)(uint64_t, uint64_t*));
  /// The device's used memory now, of the calling thread's context.
  void level_used();

  const DriverLink* operator->() const { return link_; }

 private:
  const DriverLink* link_ = nullptr;
  const void* caller_;
  DriverLink::Gone gone_{probe::kDriverKinds, -1, 0, nullptr};
  Pointer gone_key_ = 0;
};

/// While a stream of the program is being captured into a graph, some calls from any thread would
/// end the capture. Within this scope the thread's own calls are allowed, as the driver provides
/// for.
class BesideCapture {
 public:
  BesideCapture();
  ~BesideCapture();
  BesideCapture(const BesideCapture&) = delete;

 private:
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; later what it was before
  bool is_on_;
};

/// Reads what all used pools have reserved now, and the graphs of the device.
void read_pools_again(Watch& watch, int device);

/// Preserves errno as the driver left it: declared after the real call.
class KeepErrno {
 public:
  KeepErrno();
  ~KeepErrno();

 private:
  int saved_;
};

/// The used memory of the current context's device before a call, and the increase after it.
class Bracket {
 public:
  explicit Bracket(const Watch& watch) : is_on_(watch.is_on()) {
    const KeepErrno keep;
    is_known_ = is_on_ && used_now(&before_);
  }
  /// False if unknown.
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

/// After a module was loaded: the increase of the device's used memory, if known.
void took_module(Watch& watch, const Bracket& bracket, Result code, const Pointer* module);

#define DRIVER_EXPORT extern "C" __attribute__((visibility("default")))
#define WATCH() gpumemprof::driver_proxy::Watch watch(__builtin_return_address(0))

/// The definition of a function whose real one is called with `arguments`, and of what is done
/// then: `code` is its result. Parameters and arguments are in parentheses.
#define DRIVER_CALL(name, parameters, arguments, ...)             \
  DRIVER_EXPORT Result name parameters {                          \
    WATCH();                                                      \
    const Result code = CALL_REAL(name, DRIVER_UNPACK arguments); \
    __VA_ARGS__;                                                  \
    return code;                                                  \
  }
/// The same of one that gives the block `key` back.
#define DRIVER_FREE(name, parameters, arguments, kinds, key)      \
  DRIVER_EXPORT Result name parameters {                          \
    WATCH();                                                      \
    watch.gives(kinds, key);                                      \
    const Result code = CALL_REAL(name, DRIVER_UNPACK arguments); \
    watch.gave(code);                                             \
    return code;                                                  \
  }
/// The same of one that loads `*module`.
#define DRIVER_LOAD(name, parameters, arguments, module)          \
  DRIVER_EXPORT Result name parameters {                          \
    WATCH();                                                      \
    const Bracket bracket(watch);                                 \
    const Result code = CALL_REAL(name, DRIVER_UNPACK arguments); \
    took_module(watch, bracket, code, module);                    \
    return code;                                                  \
  }
#define DRIVER_UNPACK(...) __VA_ARGS__

}  // namespace gpumemprof::driver_proxy
