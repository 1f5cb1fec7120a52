// Exact counters of every device, from allocator events. include/gpumemprof/gpumemprof.h says what
// they promise; the live blocks are in live_table.h, who owns them in scopes.h.
//
//   hook ── count_alloc ──> holder of running scopes ──> table.put ──> {live, high water} as one
//        ── count_free  ──> table.take ──> live ──> the holder's scopes
//
// The order that everything refers to is that in which a device's `live` changes. An alloc adds to
// it and raises the high water in one 128-bit exchange, so the high water is the maximum over all
// values that live has had since it was reset, never one less because of a thread that was stopped
// in between. A free only lowers it and needs no more than a subtraction.
//
// No lock on these paths: they run in signal handlers, with a device's lock held, and in threads
// that may be stopped for any time. One cache line a device.
#pragma once

#include <stdint.h>

#include "probe/counters_word.h"
#include "probe/live_table.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

inline constexpr uint32_t kDevices = 64;  // slot 0 is the CPU
inline constexpr uint32_t kNoDevice = ~0u;

struct alignas(64) DeviceCounters {
  Pair live;  // low: bytes now. high: most bytes since the high water was last taken.
  uint64_t alloc_count, alloc_bytes, free_count, free_bytes;
  uint64_t unknown_free_count, untracked_count;
};

/// The open scopes of a device, in the order in which they began; scopes.cc.
struct DeviceScopes {
  uint32_t lock;
  uint32_t newest;
};

/// A list of free indexes, popped and pushed without a lock. The tag in the head keeps a thread
/// that was suspended in pop() from using an old head. scopes_pool.h.
struct PoolHead {
  uint64_t tag_and_index;  // tag << 32 | index + 1
  uint32_t fresh;          // indices never given out begin here
};

/// Everything that a forked child must not inherit, in memory that the kernel empties.
struct Control {
  uint32_t incarnation;  // 0: this process has not asked yet
  uint32_t device_keys[kDevices];
  DeviceScopes scopes[kDevices];
  PoolHead scope_pool, holder_pool;
  DeviceCounters devices[kDevices];
};

extern uint32_t g_counting;  // 0 or 1; read for every event, before g_control
extern Control* g_control;   // never null once g_counting is 1
extern LiveTable g_live_table;

inline bool is_counting() {
  return __builtin_expect(__atomic_load_n(&g_counting, __ATOMIC_ACQUIRE), 0);
}

/// True if counting is on from now. Any thread, any number of times.
bool begin_counting();

/// A number that differs between a process and its forked child: thread-local data about scopes is
/// valid only in the process that wrote it.
uint32_t counting_incarnation();

/// The slot of a device; created if `make`. kNoDevice: unknown, or too many devices.
uint32_t device_slot(Device device, bool make);

/// A block without an address cannot be identified: it counts as untracked, and its free as
/// unknown.
void count_alloc(uint64_t address, uint64_t size_bytes, Device device);
/// False where the block is unknown.
bool count_free(uint64_t address, Device device);

/// Live bytes and their maximum since the last call; the maximum restarts from live.
Pair take_high_water(uint32_t slot);

}  // namespace gpumemprof::probe
