// What the fake driver library and the fake management library of one machine share: a file, mapped
// by all processes that use either, which FAKE_GPU_STATE names. Whoever comes first makes it, from
// the board's file.
//
// tests/driver reads it too: the layout is plain, little-endian, all fields 64 bits.
#pragma once

#include <cstdint>

namespace fake_gpu {

inline constexpr unsigned kMostDevices = 8;
inline constexpr unsigned kMostProcesses = 64;

/// What a process's memory on a device is used for. The driver knows; tools have to find out.
enum Use : unsigned {
  kContexts = 0,  // what a context costs before anything is allocated
  kModules = 1,   // code and constants of loaded modules
  kMemory = 2,    // pages of cuMemAlloc and its like
  kArrays = 3,    // of arrays, with the padding that only the driver knows
  kHandles = 4,   // cuMemCreate
  kPools = 5,     // what pools have reserved
  kGraphs = 6,    // what graphs have reserved
  kHidden = 7,    // grows without a call that says so: local memory of kernels, the printf buffer
  kUses = 8
};

struct ProcessState {
  uint64_t pid;  // 0: nobody
  uint64_t bytes[kMostDevices][kUses];
};

struct DeviceState {
  uint64_t total_bytes;
  uint64_t reserved_bytes;   // by the driver for itself
  uint64_t elsewhere_bytes;  // of processes that are none here
};

struct MachineState {
  uint64_t magic;  // kMagic once the rest is there
  uint64_t device_count;
  DeviceState devices[kMostDevices];
  ProcessState processes[kMostProcesses];
};
inline constexpr uint64_t kMagic = 0x314b5355'50474b46;

/// Null where FAKE_GPU_STATE is not set, or the file cannot be had.
MachineState* machine_state();

/// Of processes that are alive: the dead ones have given everything back.
uint64_t used_by_process(const ProcessState& process, unsigned device);
uint64_t used_by_all(const MachineState& state, unsigned device);
bool is_alive(const ProcessState& process);

/// The calling process's entry, taken on first use; null where there is no room.
ProcessState* own_process(MachineState* state);

}  // namespace fake_gpu
