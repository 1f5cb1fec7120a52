// How the library that stands in for the CUDA driver (src/driver_proxy) hands what it saw to the
// probe. The two are loaded side by side and find each other by one symbol; neither needs the other
// to work.
//
// All functions may be called from any thread, never wait for anybody and keep errno. A number that
// stands for a device is CUDA's own; -1 where it is not known.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

/// What a block is. Each kind is a memory of its own in the recording (see kDriverMemoryNames),
/// since they hold one another: a pool's blocks lie in what the pool has reserved.
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

/// In the recording; tests hold the reader's words to them.
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
  /// Whether events are taken at all. Where not, nothing need be asked of the driver for their
  /// sake.
  bool (*is_wanted)();
  /// A block came. `key` is its address, or what else names it among those of its kind.
  void (*took)(DriverKind kind, int device, uint64_t key, uint64_t size_bytes, const void* caller);
  /// A block of one of `kinds` (bits by DriverKind) goes. To be called before the driver gives the
  /// address to somebody else. Answers the block, with kind kDriverKinds where it is not known.
  struct Gone {
    DriverKind kind;
    int device;
    uint64_t size_bytes;
    const void* caller;  ///< where the library lies that took it; null where it is not known
  };
  Gone (*gave)(uint32_t kinds, uint64_t key);
  /// What the driver requests refused (out of memory).
  void (*refused)(DriverKind kind, int device, uint64_t size_bytes, const void* caller);
  /// Of a kind that has one block for a thing whose size changes: reads it again. `read` answers
  /// false where it cannot be read; the value 0 is no block. Calls for one thing never run at once,
  /// and the last reading wins.
  void (*level)(DriverKind kind, int device, uint64_t key,
                bool (*read)(uint64_t key, uint64_t* bytes), const void* caller);
  /// The life of a handle of cuMemCreate. `is_own`: this process pays for it.
  void (*created)(uint64_t handle, int device, uint64_t size_bytes, bool is_own,
                  const void* caller);
  void (*retained)(uint64_t handle);
  void (*released)(uint64_t handle);
  void (*mapped)(uint64_t address, uint64_t size_bytes, uint64_t handle, const void* caller);
  void (*unmapped)(uint64_t address, uint64_t size_bytes);
  /// Something could not be followed, or a size not be asked: counted in the recording.
  void (*lost)();
};
inline constexpr uint32_t kDriverLinkVersion = 2;

}  // namespace gpumemprof::probe

/// The probe's; null where another version of it is loaded than was built with the caller.
extern "C" __attribute__((weak)) const gpumemprof::probe::DriverLink* gpumemprof_driver_link(
    uint32_t version);
