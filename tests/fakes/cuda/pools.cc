// Allocation in stream order: pools, which take memory from the device in large pieces and keep it
// until a synchronisation, and the memory of graphs.
#include "driver.h"

namespace fake_cuda {
namespace {

constexpr uint64_t kPiece = 32 * kMib;
constexpr uint64_t kAlignment = 512;

struct Pool {
  int device;
  uint64_t threshold = 0, reserved = 0, used = 0, reserved_high = 0, used_high = 0;
};
struct Block {
  Pool* pool;
  uint64_t bytes;
};
struct GraphMemory {
  uint64_t used = 0, reserved = 0;
};

std::map<Pool*, bool> g_pools;  // true: a device's default
Pool* g_default[fake_gpu::kMostDevices];
Pool* g_chosen[fake_gpu::kMostDevices];
std::map<Pointer, Block> g_blocks;
GraphMemory g_graphs[fake_gpu::kMostDevices];

Pool* default_pool(int device) {
  if (!g_default[device]) {
    g_default[device] = new Pool{device};
    g_pools[g_default[device]] = true;
  }
  return g_default[device];
}

void shrink(Pool* pool, uint64_t keep) {
  const uint64_t least = std::max(round_up(pool->used, kPiece), round_up(keep, kPiece));
  if (pool->reserved <= least) return;
  charge(pool->device, fake_gpu::kPools, -int64_t(pool->reserved - least));
  pool->reserved = least;
}

Result take(Pool* pool, uint64_t bytes, Pointer* out) {
  if (bytes == 0) return kInvalidValue;
  bytes = round_up(bytes, kAlignment);
  if (pool->used + bytes > pool->reserved) {
    const uint64_t more = round_up(pool->used + bytes - pool->reserved, kPiece);
    if (const Result code = charge(pool->device, fake_gpu::kPools, int64_t(more))) return code;
    pool->reserved += more;
  }
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  *out = take_addresses(bytes);
  g_blocks[*out] = {pool, bytes};
  return kSuccess;
}

}  // namespace

bool free_from_pool(Pointer address) {
  const auto at = g_blocks.find(address);
  if (at == g_blocks.end()) return false;
  at->second.pool->used -= at->second.bytes;
  g_blocks.erase(at);
  return true;
}

void trim_pools_at_synchronisation() {
  const std::lock_guard lock(g_lock);
  for (auto& [pool, is_default] : g_pools) shrink(pool, pool->threshold);
}

void forget_pools(int device) {
  std::erase_if(g_blocks, [=](const auto& one) { return one.second.pool->device == device; });
  for (auto& [pool, is_default] : g_pools) {
    if (pool->device != device) continue;
    pool->used = 0;
    shrink(pool, 0);
  }
  charge(device, fake_gpu::kGraphs, -int64_t(g_graphs[device].reserved));
  g_graphs[device] = {};
}

}  // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA Result cuDeviceGetDefaultMemPool(Pool** pool, int device) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device)) return kInvalidDevice;
  *pool = default_pool(device);
  return kSuccess;
}
FAKE_CUDA Result cuDeviceGetMemPool(Pool** pool, int device) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device)) return kInvalidDevice;
  *pool = g_chosen[device] ? g_chosen[device] : default_pool(device);
  return kSuccess;
}
FAKE_CUDA Result cuDeviceSetMemPool(int device, Pool* pool) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device)) return kInvalidDevice;
  g_chosen[device] = pool;
  return kSuccess;
}

/// Of CUmemPoolProps: the kinds of memory and of handle, then where: {type, number}.
struct PoolProps {
  int allocation, handles, place, device;
};
FAKE_CUDA Result cuMemPoolCreate(Pool** pool, const PoolProps* props) {
  const std::lock_guard lock(g_lock);
  if (!is_device(props->device)) return kInvalidValue;
  g_pools[*pool = new Pool{props->device}] = false;
  return kSuccess;
}
FAKE_CUDA Result cuMemPoolDestroy(Pool* pool) {
  const std::lock_guard lock(g_lock);
  const auto at = g_pools.find(pool);
  if (at == g_pools.end() || at->second) return kInvalidValue;
  pool->used = 0;
  shrink(pool, 0);
  std::erase_if(g_blocks, [=](const auto& one) { return one.second.pool == pool; });
  if (g_chosen[pool->device] == pool) g_chosen[pool->device] = nullptr;
  g_pools.erase(at);
  delete pool;
  return kSuccess;
}
FAKE_CUDA Result cuMemPoolTrimTo(Pool* pool, size_t keep) {
  const std::lock_guard lock(g_lock);
  shrink(pool, keep);
  return kSuccess;
}
FAKE_CUDA Result cuMemPoolGetAttribute(Pool* pool, int attribute, void* value) {
  const std::lock_guard lock(g_lock);
  if (!g_pools.contains(pool)) return kInvalidValue;
  const uint64_t values[] = {0,
                             1,
                             1,
                             1,
                             pool->threshold,
                             pool->reserved,
                             pool->reserved_high,
                             pool->used,
                             pool->used_high};
  if (attribute < 1 || attribute > 8) return kInvalidValue;
  if (attribute < 4)
    *static_cast<int*>(value) = 1;
  else
    *static_cast<uint64_t*>(value) = values[attribute];
  return kSuccess;
}
FAKE_CUDA Result cuMemPoolSetAttribute(Pool* pool, int attribute, void* value) {
  const std::lock_guard lock(g_lock);
  if (attribute == 4) pool->threshold = *static_cast<uint64_t*>(value);
  return attribute >= 1 && attribute <= 4 ? kSuccess : kInvalidValue;
}

FAKE_CUDA Result cuStreamGetCtx(void* stream, Context** context) {
  // 0, 1 and 2 are the default streams of the thread's own context.
  *context =
      reinterpret_cast<uintptr_t>(stream) > 2 ? *static_cast<Context**>(stream) : current_context();
  return kSuccess;
}

FAKE_CUDA Result cuMemAllocAsync(Pointer* out, size_t bytes, void* stream) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  Context* context = nullptr;
  if (cuStreamGetCtx(stream, &context) == kSuccess) device = context->device;
  return take(g_chosen[device] ? g_chosen[device] : default_pool(device), bytes, out);
}
FAKE_CUDA Result cuMemAllocAsync_ptsz(Pointer* out, size_t bytes, void* stream) {
  return cuMemAllocAsync(out, bytes, stream);
}
FAKE_CUDA Result cuMemAllocFromPoolAsync(Pointer* out, size_t bytes, Pool* pool, void*) {
  const std::lock_guard lock(g_lock);
  return g_pools.contains(pool) ? take(pool, bytes, out) : Result{kInvalidValue};
}
FAKE_CUDA Result cuMemAllocFromPoolAsync_ptsz(Pointer* out, size_t bytes, Pool* pool, void* s) {
  return cuMemAllocFromPoolAsync(out, bytes, pool, s);
}
FAKE_CUDA Result cuMemFreeAsync(Pointer address, void*) {
  const std::lock_guard lock(g_lock);
  return free_from_pool(address) || give_back_pages(address) ? kSuccess : kInvalidValue;
}
FAKE_CUDA Result cuMemFreeAsync_ptsz(Pointer address, void* s) {
  return cuMemFreeAsync(address, s);
}

FAKE_CUDA Result cuCtxSynchronize();
FAKE_CUDA Result cuStreamSynchronize(void*) { return cuCtxSynchronize(); }
FAKE_CUDA Result cuEventSynchronize(void*) { return cuCtxSynchronize(); }
FAKE_CUDA Result cuStreamSynchronize_ptsz(void*) { return cuCtxSynchronize(); }

// ---- Graphs: a node's memory is taken when the graph is launched first, and stays until it is
// trimmed.
struct Graph {
  uint64_t bytes = 0;
  int device = 0;
};
/// Of CUDA_MEM_ALLOC_NODE_PARAMS: the pool's properties (88 bytes), the access list, the size, the
/// address.
struct AllocNode {
  PoolProps pool;
  char rest[72];
  const void* access;
  size_t access_count;
  size_t bytes;
  Pointer address;
};
static_assert(offsetof(AllocNode, bytes) == 104);
FAKE_CUDA Result cuGraphCreate(Graph** graph, unsigned) {
  *graph = new Graph;
  return kSuccess;
}
FAKE_CUDA Result cuGraphAddMemAllocNode(void** node, Graph* graph, const void*, size_t,
                                        AllocNode* params) {
  const std::lock_guard lock(g_lock);
  graph->bytes += round_up(params->bytes, kPage);
  graph->device = params->pool.device;
  params->address = take_addresses(params->bytes);
  *node = graph;
  return kSuccess;
}
/// CUgraphNodeParams: the kind (10 is memory to allocate) and three words, then what that kind
/// wants.
FAKE_CUDA Result cuGraphAddNode(void** node, Graph* graph, const void*, size_t, int* params) {
  if (*params != 10) return kNotSupported;
  return cuGraphAddMemAllocNode(node, graph, nullptr, 0, reinterpret_cast<AllocNode*>(params + 4));
}
FAKE_CUDA Result cuGraphAddNode_v2(void** node, Graph* graph, const void* needs, const void*,
                                   size_t count, int* params) {
  return cuGraphAddNode(node, graph, needs, count, params);
}
FAKE_CUDA Result cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  *exec = new Graph(*graph);
  return kSuccess;
}
FAKE_CUDA Result cuGraphLaunch(Graph* exec, void*) {
  const std::lock_guard lock(g_lock);
  GraphMemory& memory = g_graphs[exec->device];
  if (exec->bytes > memory.reserved) {
    const auto more = int64_t(exec->bytes - memory.reserved);
    if (const Result code = charge(exec->device, fake_gpu::kGraphs, more)) return code;
    memory.reserved = exec->bytes;
  }
  return kSuccess;
}
FAKE_CUDA Result cuGraphLaunch_ptsz(Graph* exec, void* stream) {
  return cuGraphLaunch(exec, stream);
}
FAKE_CUDA Result cuGraphExecDestroy(Graph* exec) { return delete exec, kSuccess; }
FAKE_CUDA Result cuGraphDestroy(Graph* graph) { return delete graph, kSuccess; }
FAKE_CUDA Result cuDeviceGraphMemTrim(int device) {
  const std::lock_guard lock(g_lock);
  charge(device, fake_gpu::kGraphs, -int64_t(g_graphs[device].reserved));
  g_graphs[device] = {};
  return kSuccess;
}
FAKE_CUDA Result cuDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  const std::lock_guard lock(g_lock);
  if (!is_device(device) || attribute < 0 || attribute > 3) return kInvalidValue;
  const GraphMemory& memory = g_graphs[device];
  *static_cast<uint64_t*>(value) = attribute < 2 ? memory.used : memory.reserved;
  return kSuccess;
}
