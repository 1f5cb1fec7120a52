// What graphs have reserved: asked after each launch. CUDA and HIP have the same functions under
// two beginnings.
#include "driver_proxy/graphs.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

constexpr int kReservedCurrent = 2;  // …GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
uint32_t g_has_memory;

bool read_graphs(uint64_t key, uint64_t* bytes) {
  const int device = static_cast<int>(key - graphs_key(0));
  return ASK_REAL(Result(int, int, void*), DRIVER_FUNCTION(DeviceGetGraphMemAttribute), device,
                  kReservedCurrent, bytes) == kSuccess;
}

void level(Watch& watch, int device) {
  if (device >= 0) watch.level(kDriverGraphs, device, graphs_key(device), read_graphs);
}

/// Of the calling thread's device.
void level_own(Watch& watch) {
  if (watch.is_on() && __atomic_load_n(&g_has_memory, __ATOMIC_RELAXED)) level(watch, device_now());
}

/// Some releases of HIP take the memory with the node already.
void added_memory(Watch& watch, Result code) {
  if (!watch.is_on() || code != kSuccess) return;
  expect_graph_memory();
  level_own(watch);
}

/// The parameters of a node begin with its kind.
void added_node(Watch& watch, Result code, const int* params) {
  constexpr int kAllocNode = 10;  // CU_GRAPH_NODE_TYPE_MEM_ALLOC, hipGraphNodeTypeMemAlloc
  if (params && code == kSuccess && *params == kAllocNode) added_memory(watch, code);
}

}  // namespace

void gpumemprof::driver_proxy::expect_graph_memory() {
  __atomic_store_n(&g_has_memory, 1, __ATOMIC_RELAXED);
}

void gpumemprof::driver_proxy::level_graphs(Watch& watch, int device) {
  if (__atomic_load_n(&g_has_memory, __ATOMIC_RELAXED)) level(watch, device);
}

DRIVER_CALL(DRIVER_FUNCTION(GraphAddNode),
            (void* node, void* graph, const void* needs, size_t need_count, int* params),
            (node, graph, needs, need_count, params), added_node(watch, code, params))

DRIVER_CALL(DRIVER_FUNCTION(GraphAddMemAllocNode),
            (void* node, void* graph, const void* needs, size_t need_count, void* params),
            (node, graph, needs, need_count, params), added_memory(watch, code))

DRIVER_CALL(DRIVER_FUNCTION(GraphLaunch), (void* graph, void* stream), (graph, stream),
            level_own(watch))

DRIVER_CALL(DRIVER_FUNCTION(DeviceGraphMemTrim), (int device), (device),
            if (code == kSuccess) level(watch, device))

// What only one of them has: the same with the streams of each thread, and with edges.
#ifdef GPUMEMPROF_HIP
DRIVER_CALL(hipGraphLaunch_spt, (void* graph, void* stream), (graph, stream), level_own(watch))
#else
DRIVER_CALL(cuGraphLaunch_ptsz, (void* graph, void* stream), (graph, stream), level_own(watch))
DRIVER_CALL(cuGraphAddNode_v2,
            (void* node, void* graph, const void* needs, const void* edges, size_t need_count,
             int* params),
            (node, graph, needs, edges, need_count, params), added_node(watch, code, params))
#endif
