// What we need of NVIDIA's management library (libnvidia-ml.so.1), declared by its binary interface
// alone: no SDK at build time. Sizes and version words are those of the drivers since 450; the
// assertions below hold them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpumemprof::nvml {

using Return = int;
inline constexpr Return kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3,
                        kNoPermission = 4, kNotFound = 6, kInsufficientSize = 7,
                        kDriverNotLoaded = 9, kFunctionNotFound = 13, kGpuIsLost = 15,
                        kResetRequired = 16, kLibraryMismatch = 18, kVersionMismatch = 25;

using Device = struct DeviceOpaque*;

struct Memory {
  uint64_t total, free, used;
};
struct MemoryV2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};
/// A versioned structure begins with its size and, in the highest byte, its version.
inline constexpr uint32_t kMemoryV2 = sizeof(MemoryV2) | 2u << 24;

struct Utilization {
  uint32_t gpu, memory;  ///< percent
};
struct PciInfo {
  char bus_id_legacy[16];
  uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct ProcessV1 {
  uint32_t pid;
  uint64_t used;  ///< kNotAvailable where nobody tells
};
struct ProcessV2 {  ///< version 3 of the functions has it, too
  uint32_t pid;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;  ///< kNoInstance without MIG
};
/// Drivers 535.43 to 535.98 write this for version 3, without any other sign.
struct ProcessOf535 {
  uint32_t pid;
  uint64_t used;
  uint32_t gpu_instance, compute_instance;
  uint64_t used_protected;
};
inline constexpr uint64_t kNotAvailable = ~uint64_t{0};
inline constexpr uint32_t kNoInstance = ~uint32_t{0};

struct ProcessSample {
  uint32_t pid;
  uint64_t time_us;
  uint32_t sm, memory, encoder, decoder;  ///< percent
};

static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && kMemoryV2 == 0x02000028);
static_assert(sizeof(PciInfo) == 68 && sizeof(ProcessV1) == 16 && sizeof(ProcessV2) == 24);
static_assert(sizeof(ProcessOf535) == 32 && sizeof(ProcessSample) == 32);

inline constexpr size_t kTextBytes = 96;  ///< of names, UUIDs and versions, at most

}  // namespace gpumemprof::nvml
