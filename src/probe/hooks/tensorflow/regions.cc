#include "probe/hooks/tensorflow/events.h"

namespace gpumemprof::probe::tensorflow {

constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

namespace {

/// The regions and the memory that each is of: a region is freed outside the pool's functions too.
/// A pool doubles its regions, so there are few. A free entry's `base` is 0.
struct Region {
  uint64_t base;
  const Memory* memory;
};
constexpr uint32_t kRegions = 512;
Region g_regions[kRegions];
constexpr uint64_t kBeingFilled = 1;

}  // namespace

uint32_t g_region_end;

void on_region(ThreadState* t, void* p, size_t size) {
  if (!p || p == t->region) return;
  t->region = p;
  uint64_t base = reinterpret_cast<uintptr_t>(p);
  const Memory* memory = t->pool ? &t->pool->regions : &kNoPoolRegions;
  for (uint32_t i = 0; i < kRegions; ++i) {
    uint64_t none = 0;
    if (__atomic_load_n(&g_regions[i].base, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&g_regions[i].base, &none, kBeingFilled, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      continue;
    }
    g_regions[i].memory = memory;
    __atomic_store_n(&g_regions[i].base, base, __ATOMIC_RELEASE);
    uint32_t end = __atomic_load_n(&g_region_end, __ATOMIC_RELAXED);
    while (end < i + 1 && !__atomic_compare_exchange_n(&g_region_end, &end, i + 1, false,
                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    if (is_recorded(*memory))
      record_in(kRawAlloc, base, size, *memory, current_label(&t->annotation));
    return;
  }
  if (is_recorded(*memory)) count_loss(kLostWide);
}

bool look_for_region(ThreadState* t, const void* p) {
  if (p == t->freed_region) return t->freed_region = nullptr, true;
  uint64_t base = reinterpret_cast<uintptr_t>(p);
  uint32_t end = __atomic_load_n(&g_region_end, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < end; ++i) {
    if (__atomic_load_n(&g_regions[i].base, __ATOMIC_ACQUIRE) != base) continue;
    const Memory* memory = g_regions[i].memory;
    if (is_recorded(*memory)) record_in(kRawFreeCompleted, base, 0, *memory, Label{});
    __atomic_store_n(&g_regions[i].base, 0, __ATOMIC_RELEASE);
    if (t->region == p) t->region = nullptr;
    return true;
  }
  return false;
}

}  // namespace gpumemprof::probe::tensorflow
