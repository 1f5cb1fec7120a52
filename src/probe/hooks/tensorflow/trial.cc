#include "probe/hooks/tensorflow/trial.h"

#include "gpumemprof/gpumemprof.h"
#include "probe/attach.h"
#include "probe/recorder.h"

namespace gpumemprof::probe::tensorflow {

using namespace format;

uint32_t g_proof[kKinds];
uint32_t g_unfit;

namespace {

/// Addresses that are live, each in the one place that it can have: of two with the same place the
/// later one is known. So what is found is true, and what is not found means nothing.
constexpr uint32_t kPlaces = 1024;
uint64_t g_live[kKinds][kPlaces];
uint32_t g_allocs[kKinds], g_frees[kKinds], g_contradictions[kKinds];
uint32_t g_is_empty = 1, g_was_off;

uint64_t* place_of(Kind kind, const void* p) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  return &g_live[kind][(address >> 4 ^ address >> 14) % kPlaces];
}

uint32_t add_one(uint32_t* count) { return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED); }

}  // namespace

void try_alloc(Kind kind, const void* p) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  uint64_t before = __atomic_exchange_n(place_of(kind, p), address, __ATOMIC_ACQ_REL);
  __atomic_store_n(&g_is_empty, 0, __ATOMIC_RELAXED);
  add_one(&g_allocs[kind]);
  if (before == address && add_one(&g_contradictions[kind]) >= kContradictions) {
    give_up(kLostNoFrees);
  }
}

void try_free(Kind kind, const void* p) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (__atomic_compare_exchange_n(place_of(kind, p), &address, 0, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED)) {
    add_one(&g_proof[kind]);
  }
  if (add_one(&g_frees[kind]) >= kFreesAlone &&
      !__atomic_load_n(&g_allocs[kind], __ATOMIC_RELAXED) &&
      !__atomic_load_n(&g_was_off, __ATOMIC_RELAXED) && is_preloaded()) {
    give_up(kLostNoAllocs);
  }
}

void forget_trial() {
  // Every event of a program that is not recorded comes here: no line of memory is written then.
  if (!__atomic_load_n(&g_was_off, __ATOMIC_RELAXED)) {
    __atomic_store_n(&g_was_off, 1, __ATOMIC_RELAXED);
  }
  if (__atomic_load_n(&g_is_empty, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&g_is_empty, 1, __ATOMIC_RELAXED);
  for (auto& places : g_live) {
    for (uint64_t& place : places) __atomic_store_n(&place, 0, __ATOMIC_RELAXED);
  }
}

void give_up(LossKind why) {
  uint32_t fit = 0;
  if (!__atomic_compare_exchange_n(&g_unfit, &fit, why + 1, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  if (state() == kUnset) begin_recording();
  count_loss(why);
}

}  // namespace gpumemprof::probe::tensorflow

const char* gpumemprof_tensorflow_unfit(void) {
  using namespace gpumemprof::probe::tensorflow;
  if (is_fit()) return nullptr;
  const auto why = static_cast<gpumemprof::format::LossKind>(g_unfit - 1);
  if (why == gpumemprof::format::kLostNoFrees)
    return "its allocations arrive, its frees do not (unknown release)";
  if (why == gpumemprof::format::kLostNoAllocs)
    return "its frees arrive, its allocations do not (unknown release)";
  return "unknown layout of its allocator class";
}
