// How the stand-in for the CUDA driver (src/driver_proxy) passes its observations to the probe. The
// two are loaded side by side and find each other by one symbol; each works without the other.
//
// All functions may be called from any thread, never block and preserve errno. Device numbers are
// CUDA's own; -1 if unknown.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

/// The kind of a block. Each kind is a separate memory in the recording (see kDriverMemoryNames),
/// because they contain one another: a pool's blocks are inside what the pool has reserved.
enum DriverKind : uint32_t {
  kDriverMemory = 0,         // cuMemAlloc, cuMemAllocPitch; the size that was asked for
  kDriverArrays = 1,         // by their descriptor: what they take is the driver's secret
  kDriverHandles = 2,        // cuMemCreate: until released and mapped nowhere
  kDriverPools = 3,          // what a pool has reserved: one block a pool, whose size changes
  kDriverGraphs = 4,         // what graphs have reserved: one block a device
  kDriverInPools = 5,        // cuMemAllocAsync: lies in kDriverPools
  kDriverManaged = 6,        // may lie on either side
  kDriverPinned = 7,         // host memory that the driver allocated
  kDriverRegistered = 8,     // host memory of the program, pinned
  kDriverImported = 9,       // another process pays for it
  kDriverAddressSpace = 10,  // cuMemAddressReserve: holds nothing by itself
  kDriverMapped = 11,        // addresses that a handle is mapped to
  kDriverContexts = 12,      // measured around the call: an estimate
  kDriverUnmeasured = 13,    // a context whose size could not be measured; size 0
  kDriverModules = 14,       // measured around the call: an estimate
  kDriverDeviceUsed = 15,  // not a block: what the device said is used, by everybody; one a device
  kDriverKinds = 16
};

/// Devices from this number on are Level Zero's, counted from here: XPUs in the recording.
inline constexpr int kFirstLevelZeroDevice = 32;

/// In the recording; tests compare the reader's names with these.
inline constexpr const char* kDriverMemoryNames[kDriverKinds] = {"driver memory",
                                                                 "driver arrays",
                                                                 "driver handles",
                                                                 "driver pools",
                                                                 "driver graphs",
                                                                 "driver blocks in pools",
                                                                 "driver managed memory",
                                                                 "driver pinned host memory",
                                                                 "driver registered host memory",
                                                                 "driver imported memory",
                                                                 "driver address space",
                                                                 "driver mapped addresses",
                                                                 "driver contexts",
                                                                 "driver contexts not measured",
                                                                 "driver modules",
                                                                 "driver device used"};

/// The file of the frame whose function is the library that called the driver.
inline constexpr const char* kDriverCallerPlace = "<driver>";

struct DriverLink {
  uint32_t version;
  /// Whether events are recorded. If not, nothing needs to be queried for them.
  bool (*is_wanted)();
  /// A block was allocated. `key` is its address, or another identifier within its kind.
  void (*took)(DriverKind kind, int device, uint64_t key, uint64_t size_bytes, const void* caller);
  /// A block of one of `kinds` (bits by DriverKind) is freed. Call it before the driver can reuse
  /// the address. Returns the block, with kind kDriverKinds if it is unknown.
  struct Gone {
    DriverKind kind;
    int device;
    uint64_t size_bytes;
    const void* caller;  ///< where the library lies that took it; null where it is not known
  };
  Gone (*gave)(uint32_t kinds, uint64_t key);
  /// What the driver requests refused (out of memory).
  void (*refused)(DriverKind kind, int device, uint64_t size_bytes, const void* caller);
  /// For a kind with one block per thing whose size changes: reads it again. `read` returns false
  /// if it cannot be read; the value 0 is no block. Calls for one thing never run at once, and the
  /// last reading wins.
  void (*level)(DriverKind kind, int device, uint64_t key,
                bool (*read)(uint64_t key, uint64_t* bytes), const void* caller);
  /// The life of a handle of cuMemCreate. `is_own`: this process pays for it.
  void (*created)(uint64_t handle, int device, uint64_t size_bytes, bool is_own,
                  const void* caller);
  void (*retained)(uint64_t handle);
  void (*released)(uint64_t handle);
  void (*mapped)(uint64_t address, uint64_t size_bytes, uint64_t handle, const void* caller);
  void (*unmapped)(uint64_t address, uint64_t size_bytes);
  /// Something could not be tracked, or a size not queried: counted in the recording.
  void (*lost)();
};
inline constexpr uint32_t kDriverLinkVersion = 2;

}  // namespace gpumemprof::probe

/// The probe's; null if its version differs from the one that the caller was built with.
extern "C" __attribute__((weak)) const gpumemprof::probe::DriverLink* gpumemprof_driver_link(
    uint32_t version);
