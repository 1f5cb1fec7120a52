// What the files of the fake libcuda.so.1 share. Types as the documented interface has them,
// declared here once more so that a mistake in the proxy's cannot hide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "../machine/machine_state.h"

#define FAKE_CUDA extern "C" __attribute__((visibility("default")))

namespace fake_cuda {

using Result = int;
using Pointer = unsigned long long;  // CUdeviceptr
using fake_gpu::Use;

enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotSupported = 801,
};

inline constexpr uint64_t kMib = 1 << 20;
inline constexpr uint64_t kPage = 2 * kMib;  // in which the device's memory is handed out
inline uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Context {
  int device;
  bool is_primary;
  int references = 1;
  std::map<int, size_t> limits;
};

/// One lock around everything; functions that end in _locked want it held.
extern std::mutex g_lock;
extern bool g_is_initialized;

int device_count();
bool is_device(int device);
/// Of the calling thread; null where it has none.
Context* current_context();
/// kSuccess with the device of the current context; else the code to answer with.
Result current_device(int* device);

/// Takes or gives back memory of a device. kOutOfMemory where it is not there.
Result charge(int device, Use use, int64_t bytes);
uint64_t free_bytes(int device);
uint64_t total_bytes(int device);

/// Address space that nobody has.
Pointer take_addresses(uint64_t bytes);

/// Something released by a synchronisation.
void trim_pools_at_synchronisation();
/// Device memory in pages that several small blocks share; charged as `use`.
Result take_pages(int device, Use use, uint64_t bytes, Pointer* out);
bool give_back_pages(Pointer address);
/// Frees what is left of a context's device.
void forget_device(int device);
void forget_memory(int device);
void forget_pools(int device);
/// Blocks of pools, which cuMemFree takes too.
bool free_from_pool(Pointer address);

}  // namespace fake_cuda
