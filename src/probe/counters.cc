#include "probe/counters.h"

#include "probe/hot.h"
#include "probe/scopes.h"
#include "probe/sys.h"

namespace gpumemprof::probe {

HOT_DATA uint32_t g_counting;
Control* g_control;
constinit LiveTable g_live_table{};

namespace {

void add(uint64_t* counter, uint64_t value) {
  __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/// live += bytes, and the high water with it.
void raise(DeviceCounters* device, uint64_t bytes) {
  Pair seen = glance(&device->live), next;
  do {
    next.low = seen.low + bytes;
    next.high = next.low > seen.high ? next.low : seen.high;
  } while (!exchange_pair(&device->live, &seen, next));
  add(&device->alloc_count, 1);
  add(&device->alloc_bytes, bytes);
}

/// The other half of the pair may be exchanged meanwhile: that exchange then fails and sees this.
void lower(DeviceCounters* device, uint64_t bytes) {
  __atomic_fetch_sub(&device->live.low, bytes, __ATOMIC_SEQ_CST);
  add(&device->free_count, 1);
  add(&device->free_bytes, bytes);
}

// What else the thread makes and drops during the test is the program's: a finalizer may run there.

bool is_test_alloc(uint64_t address, uint64_t size_bytes) {
  if (t_scopes.test != kTestAwaited || size_bytes != kTestBytes) return false;
  t_scopes.test_address = address;
  t_scopes.test = kTestMade;
  return true;
}

bool is_test_free(uint64_t address) {
  if (t_scopes.test != kTestMade || address != t_scopes.test_address) return false;
  t_scopes.test = kTestOver;
  return true;
}

void end_block(const Block& block) {
  lower(&g_control->devices[block.device], block.size_bytes);
  if (block.holder) release_block(block);
}

}  // namespace

bool begin_counting() {
  if (__atomic_load_n(&g_counting, __ATOMIC_ACQUIRE)) return true;
  if (!has_pair_exchange()) return false;
  auto* fresh = static_cast<Control*>(map_emptied_by_fork(sizeof(Control)));
  if (!fresh) return false;
  Control* expected = nullptr;
  if (!__atomic_compare_exchange_n(&g_control, &expected, fresh, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    sys(SYS_munmap, sys_ptr(fresh), sizeof(Control));  // another thread was faster
  }
  __atomic_store_n(&g_counting, 1, __ATOMIC_RELEASE);
  return true;
}

uint32_t counting_incarnation() {
  // Higher than that of every ancestor, of which a thread may carry something. The word of the
  // ancestor's own is in memory of the common kind, so a child knows it.
  static uint32_t last;
  uint32_t known = __atomic_load_n(&g_control->incarnation, __ATOMIC_ACQUIRE);
  if (known) return known;
  uint32_t mine = __atomic_load_n(&last, __ATOMIC_ACQUIRE) + 1;
  if (__atomic_compare_exchange_n(&g_control->incarnation, &known, mine, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&last, mine, __ATOMIC_RELEASE);
    return mine;
  }
  return known;
}

uint32_t device_slot(Device device, bool make) {
  if (device.type == 0) return 0;
  uint32_t key = 1u << 16 | static_cast<uint32_t>(static_cast<uint8_t>(device.type)) << 8 |
                 static_cast<uint8_t>(device.index);
  for (uint32_t i = 1; i < kDevices; ++i) {
    uint32_t known = __atomic_load_n(&g_control->device_keys[i], __ATOMIC_RELAXED);
    if (known == key) return i;
    if (known) continue;
    if (!make) return kNoDevice;
    if (__atomic_compare_exchange_n(&g_control->device_keys[i], &known, key, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
        known == key) {
      return i;
    }
  }
  return kNoDevice;
}

void count_alloc(uint64_t address, uint64_t size_bytes, Device device) {
  if (__builtin_expect(t_scopes.test, 0) && is_test_alloc(address, size_bytes)) return;
  uint32_t slot = device_slot(device, true);
  if (slot == kNoDevice) return;
  DeviceCounters* counters = &g_control->devices[slot];
  if (__builtin_expect(address == 0, 0)) return add(&counters->untracked_count, 1);
  bool is_complete = true;
  Block block{size_bytes, hold_block(slot, &is_complete), slot}, old;
  if (!is_complete) add(&counters->untracked_count, 1);
  LiveTable::Outcome outcome = g_live_table.put(address, block, &old);
  if (outcome == LiveTable::kNoMemory) {
    if (block.holder) drop_holder(block.holder);
    add(&counters->untracked_count, 1);
    return;
  }
  if (outcome == LiveTable::kReplaced) {  // freed behind our back, at some moment before this one
    add(&g_control->devices[old.device].untracked_count, 1);
    end_block(old);
  }
  raise(counters, size_bytes);
  if (block.holder) count_own_alloc(block);
}

bool count_free(uint64_t address, Device device) {
  if (__builtin_expect(t_scopes.test, 0) && is_test_free(address)) return true;
  Block block;
  if (g_live_table.take(address, &block)) return end_block(block), true;
  uint32_t slot = device_slot(device, true);
  if (slot != kNoDevice) add(&g_control->devices[slot].unknown_free_count, 1);
  return false;
}

Pair take_high_water(uint32_t slot) {
  Pair* live = &g_control->devices[slot].live;
  Pair seen = glance(live);
  while (!exchange_pair(live, &seen, {seen.low, seen.low})) {
  }
  return seen;
}

}  // namespace gpumemprof::probe
