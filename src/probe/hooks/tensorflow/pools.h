// TensorFlow's allocators and the memory that they hand out.
#pragma once

#include "gpumemprof/gpumemprof.h"
#include "probe/hooks/tensorflow/functions.h"
#include "probe/hooks/tensorflow/trial.h"
#include "probe/stream.h"

namespace gpumemprof::probe::tensorflow {

inline constexpr int8_t kCpuType = GPUMEMPROF_TENSORFLOW_CPU, kGpuType = GPUMEMPROF_TENSORFLOW_GPU,
                        kOtherType = GPUMEMPROF_TENSORFLOW_OTHER;
inline constexpr uint8_t kFrameworkLayer = 1, kAllocatorLayer = 2, kDriverLayer = 3;  // Layer::k…

/// A pool, by its object. Its blocks are inside its regions, so regions are a separate memory.
struct Pool {
  const void* self;  // stored last
  const void* table;
  Memory blocks, regions;
};
inline constexpr uint32_t kPools = 32;
extern Pool g_pools[kPools];
extern uint32_t g_pool_count;

inline constexpr Memory kAligned = {0, {kCpuType, 0}, kFrameworkLayer, true, "cpu"};
inline constexpr Memory kNoPool = {1, {kOtherType, -1}, kAllocatorLayer, false, "other pools"};
inline constexpr Memory kNoPoolRegions = {
    2, {kOtherType, -1}, kDriverLayer, true, "other pools regions"};
inline constexpr uint16_t kFirstPoolId = 3;

/// A class of pools: its functions, and the position of its allocation in the table.
struct PoolKind {
  FunctionIndex allocate, deallocate;
  FunctionIndex size;  // how large a block is in truth; kFunctions where it does not tell
  int allocate_slot;
  Kind kind;
};
inline constexpr PoolKind kBfc{kBfcAllocate, kBfcDeallocate, kBfcSize, kSlotAllocateWith, kOfBfc};
inline constexpr PoolKind kOldBfc{kOldBfcAllocate, kOldBfcDeallocate, kOldBfcSize,
                                  kSlotAllocateWith, kOfBfc};
// The driver's pool does not report how it rounds, so only the requested size is known.
inline constexpr PoolKind kAsync{kAsyncAllocate, kAsyncDeallocate, kFunctions, kSlotAllocate,
                                 kOfAsync};

/// Null if there are too many, or if the class is not as expected: then recording ends (trial.h).
const Pool* add_pool(Client* client, void* self, const PoolKind& kind);

/// The pool of the allocator `self`. `last_pool` is the thread's last one, checked first. Null as
/// above.
inline const Pool* pool_of(const Pool** last_pool, Client* client, void* self,
                           const PoolKind& kind) {
  const void* table = table_of(self);
  const Pool* last = *last_pool;
  if (__builtin_expect(last && last->self == self && last->table == table, 1)) return last;
  uint32_t count = __atomic_load_n(&g_pool_count, __ATOMIC_RELAXED);
  const Pool* found = nullptr;
  for (uint32_t i = 0; i < count && i < kPools && !found; ++i) {
    const void* known = __atomic_load_n(&g_pools[i].self, __ATOMIC_ACQUIRE);
    if (known == self && g_pools[i].table == table) found = &g_pools[i];
  }
  if (!found && count < kPools) found = add_pool(client, self, kind);
  if (found) *last_pool = found;
  return found;
}

}  // namespace gpumemprof::probe::tensorflow
