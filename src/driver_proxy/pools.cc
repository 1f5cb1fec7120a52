// Allocation in stream order. What counts is what the pools have reserved; the blocks lie in that.
// A pool gives memory back at synchronisations, so it is asked again after each.
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

constexpr int kReservedCurrent = 5;       // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
constexpr int kGraphReservedCurrent = 2;  // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT

/// The pools that were used so far. A place is taken once; 0 in `pool` is a free one.
struct KnownPool {
  Pointer pool;
  int device;
};
constexpr uint32_t kMostPools = 64;
KnownPool g_pools[kMostPools];
uint32_t g_pool_count;  // places in use, and no more than that are looked at
uint32_t g_has_graph_memory;

void know_pool(Pointer pool, int device) {
  const uint32_t count = __atomic_load_n(&g_pool_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (__atomic_load_n(&g_pools[i].pool, __ATOMIC_ACQUIRE) == pool) return;
  }
  for (uint32_t i = 0; i < kMostPools; ++i) {
    Pointer none = 0;
    if (!__atomic_compare_exchange_n(&g_pools[i].pool, &none, pool, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    g_pools[i].device = device;
    uint32_t seen = count;
    while (seen < i + 1 && !__atomic_compare_exchange_n(&g_pool_count, &seen, i + 1, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return;
  }
}

int device_of_pool(Pointer pool, int otherwise) {
  const uint32_t count = __atomic_load_n(&g_pool_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (__atomic_load_n(&g_pools[i].pool, __ATOMIC_ACQUIRE) == pool) return g_pools[i].device;
  }
  return otherwise;
}

bool read_reserved(uint64_t pool, uint64_t* bytes) {
  return ASK_REAL(Result(Pointer, int, void*), cuMemPoolGetAttribute, pool, kReservedCurrent,
                  bytes) == kSuccess;
}

bool read_graphs(uint64_t key, uint64_t* bytes) {
  const int device = static_cast<int>(key - graphs_key(0));
  return ASK_REAL(Result(int, int, void*), cuDeviceGetGraphMemAttribute, device,
                  kGraphReservedCurrent, bytes) == kSuccess;
}

void level_pool(Watch& watch, Pointer pool, int device) {
  watch.level(kDriverPools, device, pool, read_reserved);
}

void level_all_pools(Watch& watch) {
  if (!watch.is_on()) return;
  const uint32_t count = __atomic_load_n(&g_pool_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    const Pointer pool = __atomic_load_n(&g_pools[i].pool, __ATOMIC_ACQUIRE);
    if (pool) level_pool(watch, pool, g_pools[i].device);
  }
}

void level_graphs(Watch& watch) {
  if (!watch.is_on() || !__atomic_load_n(&g_has_graph_memory, __ATOMIC_RELAXED)) return;
  const int device = device_now();
  if (device >= 0) watch.level(kDriverGraphs, device, graphs_key(device), read_graphs);
}

/// After an allocation from the pool that is the device's now.
void took_from_current(Watch& watch, Result code, const Pointer* out, size_t bytes) {
  if (!watch.is_on()) return;
  const int device = device_now();
  Pointer pool = 0;
  if (device < 0) return;
  watch.took(code, kDriverInPools, out, bytes, device);
  // Within a capture of a graph no pool is used; what it will need is the graphs'.
  __atomic_store_n(&g_has_graph_memory, 1, __ATOMIC_RELAXED);
  if (ASK_REAL(Result(Pointer*, int), cuDeviceGetMemPool, &pool, device) != kSuccess) return;
  know_pool(pool, device);
  level_pool(watch, pool, device);
}

void took_from(Watch& watch, Result code, const Pointer* out, size_t bytes, Pointer pool) {
  if (!watch.is_on()) return;
  const int device = device_of_pool(pool, device_now());
  know_pool(pool, device);
  watch.took(code, kDriverInPools, out, bytes, device);
  level_pool(watch, pool, device);
}

constexpr uint32_t kFreedInOrder = 1u << kDriverInPools | 1u << kDriverMemory;

}  // namespace

void gpumemprof::driver_proxy::read_pools_again(Watch& watch, int device) {
  level_all_pools(watch);
  if (device >= 0 && __atomic_load_n(&g_has_graph_memory, __ATOMIC_RELAXED))
    watch.level(kDriverGraphs, device, graphs_key(device), read_graphs);
}

DRIVER_EXPORT Result cuMemAllocAsync(Pointer* out, size_t bytes, void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocAsync, out, bytes, stream);
  took_from_current(watch, code, out, bytes);
  return code;
}
DRIVER_EXPORT Result cuMemAllocAsync_ptsz(Pointer* out, size_t bytes, void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocAsync_ptsz, out, bytes, stream);
  took_from_current(watch, code, out, bytes);
  return code;
}
DRIVER_EXPORT Result cuMemAllocFromPoolAsync(Pointer* out, size_t bytes, Pointer pool,
                                             void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocFromPoolAsync, out, bytes, pool, stream);
  took_from(watch, code, out, bytes, pool);
  return code;
}
DRIVER_EXPORT Result cuMemAllocFromPoolAsync_ptsz(Pointer* out, size_t bytes, Pointer pool,
                                                  void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuMemAllocFromPoolAsync_ptsz, out, bytes, pool, stream);
  took_from(watch, code, out, bytes, pool);
  return code;
}

DRIVER_EXPORT Result cuMemFreeAsync(Pointer address, void* stream) {
  WATCH();
  watch.gives(kFreedInOrder, address);
  const Result code = CALL_REAL(cuMemFreeAsync, address, stream);
  watch.gave(code);
  return code;
}
DRIVER_EXPORT Result cuMemFreeAsync_ptsz(Pointer address, void* stream) {
  WATCH();
  watch.gives(kFreedInOrder, address);
  const Result code = CALL_REAL(cuMemFreeAsync_ptsz, address, stream);
  watch.gave(code);
  return code;
}

/// The begin of CUmemPoolProps: kinds of allocation and of handle, then where: {type, number}; type
/// 1 is a device.
struct PoolProps {
  int allocation, handles, place, number;
};

DRIVER_EXPORT Result cuMemPoolCreate(Pointer* out, const PoolProps* props) {
  WATCH();
  const Result code = CALL_REAL(cuMemPoolCreate, out, props);
  if (watch.is_on() && code == kSuccess && props->place == 1) know_pool(*out, props->number);
  return code;
}

DRIVER_EXPORT Result cuMemPoolDestroy(Pointer pool) {
  WATCH();
  if (watch.is_on()) {  // another pool may have this number at once
    watch.gives(1u << kDriverPools, pool);
    for (KnownPool& known : g_pools) {
      if (__atomic_load_n(&known.pool, __ATOMIC_RELAXED) == pool)
        __atomic_store_n(&known.pool, 0, __ATOMIC_RELEASE);
    }
  }
  const Result code = CALL_REAL(cuMemPoolDestroy, pool);
  watch.gave(code);
  return code;
}

DRIVER_EXPORT Result cuMemPoolTrimTo(Pointer pool, size_t keep) {
  WATCH();
  const Result code = CALL_REAL(cuMemPoolTrimTo, pool, keep);
  if (watch.is_on() && code == kSuccess) {
    const int device = device_of_pool(pool, device_now());
    know_pool(pool, device);
    level_pool(watch, pool, device);
  }
  return code;
}

DRIVER_EXPORT Result cuStreamSynchronize(void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuStreamSynchronize, stream);
  level_all_pools(watch);
  return code;
}
DRIVER_EXPORT Result cuStreamSynchronize_ptsz(void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuStreamSynchronize_ptsz, stream);
  level_all_pools(watch);
  return code;
}
DRIVER_EXPORT Result cuCtxSynchronize() {
  WATCH();
  const Result code = CALL_REAL(cuCtxSynchronize);
  level_all_pools(watch);
  return code;
}
DRIVER_EXPORT Result cuCtxSynchronize_v2(void* context) {
  WATCH();
  const Result code = CALL_REAL(cuCtxSynchronize_v2, context);
  level_all_pools(watch);
  return code;
}

DRIVER_EXPORT Result cuGraphAddMemAllocNode(void* node, void* graph, const void* needs,
                                            size_t need_count, void* params) {
  WATCH();
  const Result code = CALL_REAL(cuGraphAddMemAllocNode, node, graph, needs, need_count, params);
  if (watch.is_on()) __atomic_store_n(&g_has_graph_memory, 1, __ATOMIC_RELAXED);
  return code;
}
DRIVER_EXPORT Result cuGraphLaunch(void* graph, void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuGraphLaunch, graph, stream);
  level_graphs(watch);
  return code;
}
DRIVER_EXPORT Result cuGraphLaunch_ptsz(void* graph, void* stream) {
  WATCH();
  const Result code = CALL_REAL(cuGraphLaunch_ptsz, graph, stream);
  level_graphs(watch);
  return code;
}
DRIVER_EXPORT Result cuDeviceGraphMemTrim(int device) {
  WATCH();
  const Result code = CALL_REAL(cuDeviceGraphMemTrim, device);
  if (watch.is_on() && code == kSuccess)
    watch.level(kDriverGraphs, device, graphs_key(device), read_graphs);
  return code;
}
