// HIP's allocation in stream order. As CUDA's: what counts is what pools have reserved; devices'
// own pools are asked again after each synchronisation, created ones by calls that name them.
#include "driver_proxy/graphs.h"
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

constexpr int kReservedCurrent = 5;  // hipMemPoolAttrReservedMemCurrent
constexpr int kMostDevices = 64;
/// Devices' own pools that were used so far: they are never destroyed.
Pointer g_default_pools[kMostDevices];

bool read_reserved(uint64_t pool, uint64_t* bytes) {
  return ASK_REAL(Result(Pointer, int, void*), hipMemPoolGetAttribute, pool, kReservedCurrent,
                  bytes) == kSuccess;
}

/// Reads the pool that hipMallocAsync takes from. Only now: another thread may destroy a pool that is
/// not the device's own at any time.
void level_current(Watch& watch) {
  const int device = watch.is_on() ? device_now() : -1;
  if (device < 0 || device >= kMostDevices) return;
  const KeepErrno keep;
  Pointer own = 0, current = 0;
  if (ASK_REAL(Result(Pointer*, int), hipDeviceGetMemPool, &current, device) != kSuccess)
    return watch->lost();
  if (ASK_REAL(Result(Pointer*, int), hipDeviceGetDefaultMemPool, &own, device) == kSuccess &&
      own == current)
    __atomic_store_n(&g_default_pools[device], own, __ATOMIC_RELAXED);
  watch.level(kDriverPools, device, current, read_reserved);
}

void level_default_pools(Watch& watch) {
  if (!watch.is_on()) return;
  for (int device = 0; device < kMostDevices; ++device) {
    const Pointer pool = __atomic_load_n(&g_default_pools[device], __ATOMIC_RELAXED);
    if (pool) watch.level(kDriverPools, device, pool, read_reserved);
  }
}

}  // namespace

DRIVER_EXPORT Result hipMallocAsync(Pointer* out, size_t bytes, void* stream) {
  WATCH();
  const Result code = CALL_REAL(hipMallocAsync, out, bytes, stream);
  watch.took(code, kDriverInPools, out, bytes);
  expect_graph_memory();  // while a graph is captured it is the graph's
  level_current(watch);
  return code;
}

DRIVER_EXPORT Result hipMallocFromPoolAsync(Pointer* out, size_t bytes, Pointer pool,
                                            void* stream) {
  WATCH();
  const Result code = CALL_REAL(hipMallocFromPoolAsync, out, bytes, pool, stream);
  watch.took(code, kDriverInPools, out, bytes);
  const int device = watch.is_on() ? device_now() : -1;
  if (device >= 0) watch.level(kDriverPools, device, pool, read_reserved);
  return code;
}

DRIVER_FREE(hipFreeAsync, (Pointer address, void* stream), (address, stream),
            1u << kDriverInPools | 1u << kDriverMemory, address)

DRIVER_EXPORT Result hipMemPoolTrimTo(Pointer pool, size_t keep) {
  WATCH();
  const Result code = CALL_REAL(hipMemPoolTrimTo, pool, keep);
  const int device = watch.is_on() ? device_now() : -1;
  if (device >= 0) watch.level(kDriverPools, device, pool, read_reserved);
  return code;
}

DRIVER_FREE(hipMemPoolDestroy, (Pointer pool), (pool), 1u << kDriverPools, pool)

DRIVER_CALL(hipStreamSynchronize, (void* stream), (stream), level_default_pools(watch))

DRIVER_CALL(hipStreamSynchronize_spt, (void* stream), (stream), level_default_pools(watch))

DRIVER_CALL(hipEventSynchronize, (void* event), (event), level_default_pools(watch))

DRIVER_CALL(hipDeviceSynchronize, (), (), level_default_pools(watch))
