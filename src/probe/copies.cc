#include "probe/copies.h"

namespace gpumemprof::probe {
namespace {

constexpr uint32_t kBits = 1u << 16;
constexpr uint32_t kMostBefore = 1u << 16;  // copies that are told before a step has ended

uint64_t g_watched[kBits / 64];
uint32_t g_told_before;

uint32_t bit_of(uint64_t address) {
  return static_cast<uint32_t>((address >> 4) * 0x9E3779B97F4A7C15u >> 48) % kBits;
}

bool is_watched(uint64_t address) {
  const uint32_t bit = bit_of(address);
  return __atomic_load_n(&g_watched[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1;
}

}  // namespace

void watch_copies_of(uint64_t address) {
  const uint32_t bit = bit_of(address);
  __atomic_fetch_or(&g_watched[bit / 64], uint64_t{1} << bit % 64, __ATOMIC_RELAXED);
}

void end_watching_all_copies() {
  __atomic_store_n(&g_told_before, kMostBefore, __ATOMIC_RELAXED);
}

bool is_watched_copy(uint64_t source, uint64_t target) {
  if (is_watched(source) || is_watched(target)) return true;
  if (__atomic_load_n(&g_told_before, __ATOMIC_RELAXED) >= kMostBefore) return false;
  return __atomic_fetch_add(&g_told_before, 1, __ATOMIC_RELAXED) < kMostBefore;
}

}  // namespace gpumemprof::probe
