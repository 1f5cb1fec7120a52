// Allocation in stream order. What counts is what the pools have reserved; the blocks lie in that.
// A pool gives memory back at synchronisations, so devices' own pools are asked again after each;
// one that the program created only by calls that name it.
#include "driver_proxy/graphs.h"
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

constexpr int kReservedCurrent = 5;  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT

/// Devices' own pools that were used so far, by device. They are never destroyed, so they alone may
/// be asked at a time of our choosing: another thread may destroy any other pool meanwhile.
constexpr int kMostDevices = 64;
Pointer g_default_pools[kMostDevices];

/// Where a pool's memory lies: that of the host and managed memory are no bytes of a device.
struct PoolPlace {
  int device;
  DriverKind blocks;
};
/// Pools that the program created. `pool` is stored last: 0 is a free place, kTaken one being
/// filled.
struct CreatedPool {
  Pointer pool;
  PoolPlace place;
};
constexpr Pointer kTaken = 1;
constexpr uint32_t kMostPools = 64;
CreatedPool g_created_pools[kMostPools];

void know_created(Watch& watch, Pointer pool, PoolPlace place) {
  for (CreatedPool& known : g_created_pools) {
    Pointer none = 0;
    if (!__atomic_compare_exchange_n(&known.pool, &none, kTaken, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    known.place = place;
    __atomic_store_n(&known.pool, pool, __ATOMIC_RELEASE);
    return;
  }
  watch->lost();  // its blocks will be counted as if it were the calling thread's device's
}

bool find_created(Pointer pool, PoolPlace* place) {
  for (CreatedPool& known : g_created_pools) {
    if (__atomic_load_n(&known.pool, __ATOMIC_ACQUIRE) != pool) continue;
    *place = known.place;
    return true;
  }
  return false;
}

void forget_created(Pointer pool) {
  for (CreatedPool& known : g_created_pools) {
    Pointer expected = pool;
    __atomic_compare_exchange_n(&known.pool, &expected, 0, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
  }
}

/// Whether `pool` is the device's own, which is then known.
bool is_default(Pointer pool, int device) {
  if (device < 0 || device >= kMostDevices) return false;
  Pointer own = __atomic_load_n(&g_default_pools[device], __ATOMIC_RELAXED);
  if (own) return own == pool;
  if (ASK_REAL(Result(Pointer*, int), cuDeviceGetDefaultMemPool, &own, device) != kSuccess ||
      own != pool)
    return false;
  __atomic_store_n(&g_default_pools[device], own, __ATOMIC_RELAXED);
  return true;
}

PoolPlace place_of(Pointer pool) {
  PoolPlace place = {device_now(), kDriverInPools};
  if (find_created(pool, &place) || is_default(pool, place.device)) return place;
  int count = 0;
  ASK_REAL(Result(int*), cuDeviceGetCount, &count);
  for (int device = 0; device < count && device < kMostDevices; ++device)
    if (is_default(pool, device)) return {device, kDriverInPools};
  return place;  // created before the recording began: nobody told where
}

bool read_reserved(uint64_t pool, uint64_t* bytes) {
  return ASK_REAL(Result(Pointer, int, void*), cuMemPoolGetAttribute, pool, kReservedCurrent,
                  bytes) == kSuccess;
}

void level_pool(Watch& watch, Pointer pool, int device) {
  watch.level(kDriverPools, device, pool, read_reserved);
}

void level_default_pools(Watch& watch) {
  if (!watch.is_on()) return;
  for (int device = 0; device < kMostDevices; ++device) {
    const Pointer pool = __atomic_load_n(&g_default_pools[device], __ATOMIC_RELAXED);
    if (pool) level_pool(watch, pool, device);
  }
}

/// The device of a stream; that of the calling thread for the streams that stand for its own.
int device_of_stream(void* stream) {
  void *context = nullptr, *current = nullptr;
  if (reinterpret_cast<uintptr_t>(stream) <= 2 ||
      ASK_REAL(Result(void*, void**), cuStreamGetCtx, stream, &context) != kSuccess ||
      ASK_REAL(Result(void**), cuCtxGetCurrent, &current) != kSuccess || context == current ||
      ASK_REAL(Result(void*), cuCtxPushCurrent_v2, context) != kSuccess) {
    return device_now();
  }
  const int device = device_now();
  ASK_REAL(Result(void**), cuCtxPopCurrent_v2, &context);
  return device;
}

/// After an allocation from the pool that is the device's now. Where that is one that the program
/// created, another thread may destroy it: what it has reserved is not asked.
void took_from_current(Watch& watch, Result code, const Pointer* out, size_t bytes, void* stream) {
  if (!watch.is_on()) return;
  const KeepErrno keep;
  const int device = device_of_stream(stream);
  Pointer pool = 0;
  if (device < 0) return;
  watch.took(code, kDriverInPools, out, bytes, device);
  // Within a capture of a graph no pool is used; what it will need is the graphs'.
  expect_graph_memory();
  if (ASK_REAL(Result(Pointer*, int), cuDeviceGetMemPool, &pool, device) != kSuccess) return;
  if (is_default(pool, device)) {
    level_pool(watch, pool, device);
  } else if (code == kSuccess) {
    watch->lost();
  }
}

/// The program's own call names the pool: it must not destroy it before that has returned.
void took_from(Watch& watch, Result code, const Pointer* out, size_t bytes, Pointer pool) {
  if (!watch.is_on()) return;
  const KeepErrno keep;
  const PoolPlace place = place_of(pool);
  watch.took(code, place.blocks, out, bytes, place.device);
  if (place.blocks == kDriverInPools) level_pool(watch, pool, place.device);
}

constexpr uint32_t kFreedInOrder =
    1u << kDriverInPools | 1u << kDriverMemory | 1u << kDriverManaged | 1u << kDriverPinned;

}  // namespace

void gpumemprof::driver_proxy::read_pools_again(Watch& watch, int device) {
  level_default_pools(watch);
  level_graphs(watch, device);
}

DRIVER_CALL(cuMemAllocAsync, (Pointer* out, size_t bytes, void* stream), (out, bytes, stream),
            took_from_current(watch, code, out, bytes, stream))
DRIVER_CALL(cuMemAllocAsync_ptsz, (Pointer* out, size_t bytes, void* stream), (out, bytes, stream),
            took_from_current(watch, code, out, bytes, stream))
DRIVER_CALL(cuMemAllocFromPoolAsync, (Pointer* out, size_t bytes, Pointer pool, void* stream),
            (out, bytes, pool, stream), took_from(watch, code, out, bytes, pool))
DRIVER_CALL(cuMemAllocFromPoolAsync_ptsz, (Pointer* out, size_t bytes, Pointer pool, void* stream),
            (out, bytes, pool, stream), took_from(watch, code, out, bytes, pool))

DRIVER_FREE(cuMemFreeAsync, (Pointer address, void* stream), (address, stream),
            kFreedInOrder, address)
DRIVER_FREE(cuMemFreeAsync_ptsz, (Pointer address, void* stream), (address, stream),
            kFreedInOrder, address)

/// The begin of CUmemPoolProps: kinds of allocation and of handle, then where: {type, number}.
struct PoolProps {
  int allocation, handles, place, number;
};
constexpr int kOnDevice = 1;           // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kManagedAllocation = 2;  // CU_MEM_ALLOCATION_TYPE_MANAGED

DRIVER_EXPORT Result cuMemPoolCreate(Pointer* out, const PoolProps* props) {
  WATCH();
  const Result code = CALL_REAL(cuMemPoolCreate, out, props);
  if (!watch.is_on() || code != kSuccess) return code;
  const bool is_on_device = props->place == kOnDevice;
  if (props->allocation == kManagedAllocation) {
    const KeepErrno keep;
    know_created(watch, *out, {is_on_device ? props->number : device_now(), kDriverManaged});
  } else {
    know_created(
        watch, *out,
        is_on_device ? PoolPlace{props->number, kDriverInPools} : PoolPlace{0, kDriverPinned});
  }
  return code;
}

DRIVER_EXPORT Result cuMemPoolDestroy(Pointer pool) {
  WATCH();
  PoolPlace place{};
  const bool was_known = watch.is_on() && find_created(pool, &place);
  if (watch.is_on()) {  // another pool may have this number at once
    watch.gives(1u << kDriverPools, pool);
    forget_created(pool);
  }
  const Result code = CALL_REAL(cuMemPoolDestroy, pool);
  watch.gave(code);
  if (was_known && code != kSuccess) know_created(watch, pool, place);
  return code;
}

DRIVER_EXPORT Result cuMemPoolTrimTo(Pointer pool, size_t keep_bytes) {
  WATCH();
  const Result code = CALL_REAL(cuMemPoolTrimTo, pool, keep_bytes);
  if (watch.is_on() && code == kSuccess) {
    const KeepErrno keep;
    const PoolPlace place = place_of(pool);
    if (place.blocks == kDriverInPools) level_pool(watch, pool, place.device);
  }
  return code;
}

DRIVER_CALL(cuEventSynchronize, (void* event), (event), level_default_pools(watch))
DRIVER_CALL(cuStreamSynchronize, (void* stream), (stream), level_default_pools(watch))
DRIVER_CALL(cuStreamSynchronize_ptsz, (void* stream), (stream), level_default_pools(watch))
DRIVER_CALL(cuCtxSynchronize, (), (), level_default_pools(watch))
DRIVER_CALL(cuCtxSynchronize_v2, (void* context), (context), level_default_pools(watch))
