#include "probe/hooks/tensorflow/pools.h"

#include <string.h>

namespace gpumemprof::probe::tensorflow {

Pool g_pools[kPools];
uint32_t g_pool_count;

namespace {

/// std::string as libstdc++ has it since 2015, which all wheels are built with. The destructor
/// makes it a class that is returned in memory, as the real one is.
struct String {
  const char* text;
  size_t length;
  uint64_t local[2];
  ~String() {}
};
size_t read_name(void* allocator, char* out, size_t size) {
  String name = virtual_function<String (*)(void*)>(allocator, kSlotName)(allocator);
  const void* local = name.local;
  bool is_short = name.text == local;
  // Anything else than the two forms of that class is not believed.
  if (!name.text || name.length >= size || is_short != (name.length < sizeof(name.local))) return 0;
  memcpy(out, name.text, name.length);
  auto drop = reinterpret_cast<void (*)(void*)>(dlsym ? dlsym(RTLD_DEFAULT, "_ZdlPv") : nullptr);
  if (!is_short && drop) drop(const_cast<char*>(name.text));
  return name.length;
}

/// "GPU_0_bfc", "gpu_async_1": the number after `start`; -1 where it is another name.
int number_after(const char* name, const char* start) {
  size_t length = strlen(start);
  if (strncmp(name, start, length) != 0) return -1;
  int number = -1;
  for (const char* p = name + length; *p >= '0' && *p <= '9' && number < 12; ++p) {
    number = (number < 0 ? 0 : number * 10) + (*p - '0');
  }
  return number;
}

Device device_of(const char* name) {
  int gpu = number_after(name, "GPU_");
  if (gpu < 0) gpu = number_after(name, "gpu_async_");
  if (gpu >= 0) return {kGpuType, static_cast<int8_t>(gpu)};
  // "mklcpu", "bfc_cpu_allocator_for_gpu", "gpu_host_bfc", "cuda_host_bfc": memory of the host.
  if (strstr(name, "cpu") || strstr(name, "host")) return {kCpuType, 0};
  return {kOtherType, -1};
}

/// Whether the function stands in the table where it must, ours or the real one. Only then are the
/// places of others believed.
bool stands_at(Client* client, const void* table, int slot, FunctionIndex which) {
  const void* there = static_cast<const void* const*>(table)[slot];
  return there == kTable[which].ours || there == g_clients.real<void*>(client, which);
}

}  // namespace

__attribute__((noinline, cold)) const Pool* add_pool(Client* client, void* self,
                                                     const PoolKind& kind) {
  const void* table = table_of(self);
  if (!stands_at(client, table, kind.allocate_slot, kind.allocate) ||
      !stands_at(client, table, kSlotDeallocate, kind.deallocate)) {
    return give_up(format::kLostUnknown), nullptr;
  }
  uint32_t index = __atomic_fetch_add(&g_pool_count, 1, __ATOMIC_RELAXED);
  if (index >= kPools) return __atomic_fetch_sub(&g_pool_count, 1, __ATOMIC_RELAXED), nullptr;
  Pool* pool = &g_pools[index];
  Memory* blocks = &pool->blocks;
  constexpr char kRegions[] = " regions";
  size_t length = read_name(self, blocks->name, sizeof(blocks->name) - sizeof(kRegions));
  if (length == 0) length = strlen(strcpy(blocks->name, "unnamed pool"));
  blocks->id = static_cast<uint16_t>(kFirstPoolId + 2 * index);
  blocks->device = device_of(blocks->name);
  blocks->layer = kAllocatorLayer;
  blocks->size_is_requested = kind.size == kFunctions;
  pool->regions = *blocks;
  pool->regions.id += 1;
  pool->regions.layer = kDriverLayer;
  pool->regions.size_is_requested = true;
  memcpy(pool->regions.name + length, kRegions, sizeof(kRegions));
  pool->table = table;
  __atomic_store_n(&pool->self, self, __ATOMIC_RELEASE);
  return pool;
}

}  // namespace gpumemprof::probe::tensorflow
