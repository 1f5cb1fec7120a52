#include "probe/hooks/driver/blocks.h"

#include <string.h>

#include "probe/hooks/driver/callers.h"
#include "probe/live_table.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

constexpr uint8_t kDriverLayer = 3;
constexpr int kMostDevices = 64;

bool is_of_host(DriverKind kind) { return kind == kDriverPinned || kind == kDriverRegistered; }

/// Addresses, and what is named by something else, apart: a pool's number may be an address.
LiveTable g_addresses, g_things, g_reserved;

LiveTable& table_of(DriverKind kind) {
  switch (kind) {
    case kDriverMemory:
    case kDriverInPools:
    case kDriverManaged:
    case kDriverPinned:
    case kDriverRegistered:
    case kDriverImported:
      return g_addresses;
    case kDriverAddressSpace:
      return g_reserved;  // begins where its first mapping does
    default:
      return g_things;
  }
}

uint32_t pack_place(DriverKind kind, int device) {
  return static_cast<uint32_t>(kind) << 16 | static_cast<uint32_t>(device + 1);
}
DriverKind kind_of(const Block& block) { return DriverKind(block.device >> 16); }
int device_of(const Block& block) { return static_cast<int>(block.device & 0xffff) - 1; }

/// One thread at a time reads an object's size, and none waits: a second one asks the first to read
/// again. In memory that a forked child finds empty, so that it holds no turn.
struct Turn {
  uint64_t key;    // the object, for good; 0: not used yet
  uint32_t state;  // 0: free. 1: being read. 2: being read, and must be read again
};
constexpr uint32_t kTurns = 256;
Turn* g_turns;

Turn* turn_of(uint64_t key) {
  Turn* turns = __atomic_load_n(&g_turns, __ATOMIC_ACQUIRE);
  if (!turns) {
    auto* fresh = static_cast<Turn*>(map_emptied_by_fork(kTurns * sizeof(Turn)));
    if (!fresh) return nullptr;
    // Of two that came at once one mapping is left over: a page, once.
    if (__atomic_compare_exchange_n(&g_turns, &turns, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      turns = fresh;
    }
  }
  const auto first = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 56);
  for (uint32_t i = 0; i < kTurns; ++i) {
    Turn& turn = turns[(first + i) % kTurns];
    uint64_t owner = __atomic_load_n(&turn.key, __ATOMIC_ACQUIRE);
    if (owner == key) return &turn;
    if (owner == 0 && (__atomic_compare_exchange_n(&turn.key, &owner, key, false, __ATOMIC_ACQ_REL,
                                                   __ATOMIC_ACQUIRE) ||
                       owner == key)) {
      return &turn;
    }
  }
  return &turns[first];  // more things than turns: shared, and what is lost by that is counted
}

/// The size that is known now becomes another one: two events, as a block cannot grow.
void change_level(DriverKind kind, int device, uint64_t key, uint64_t bytes, const void* caller) {
  Block before{};
  const bool was_there = g_things.take(key, &before);
  if (was_there && before.size_bytes == bytes) {
    g_things.put(key, before, &before);
    return;
  }
  if (was_there) record_driver(kRawFreeCompleted, kind, device, key, 0, nullptr);
  if (bytes == 0) return;
  Block old;
  const uint32_t library = driver_caller_number(caller);
  if (g_things.put(key, {bytes, library, pack_place(kind, device)}, &old) == LiveTable::kNoMemory) {
    count_loss(kLostNoBuffer);
    return;
  }
  record_driver(kRawAlloc, kind, device, key, bytes, caller);
}

}  // namespace

bool driver_is_wanted() {
  const uint32_t now = state();
  // What the driver would be asked for our sake are system calls: there are none of ours any more.
  if (__builtin_expect(g_sandboxed, 0)) {
    static uint32_t is_said;
    if (g_folder[0] && now == kRecording &&
        !__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED))
      count_loss(kLostSandboxed);
    return false;
  }
  return g_folder[0] != 0 && now != kOff && now != kFrozen && now != kUnrecordable;
}

void record_driver(RawAction action, DriverKind kind, int device, uint64_t key, uint64_t size_bytes,
                   const void* caller) {
  if (kind >= kDriverKinds || device < -1 || device >= kMostDevices) {
    count_loss(kLostWide);
    return;
  }
  Memory memory{};
  memory.id = static_cast<uint16_t>(0x4000 | kind << 7 | static_cast<uint32_t>(device + 1));
  constexpr int8_t kCpu = 0, kCuda = 1, kXpu = 12;  // c10::DeviceType
  const bool is_xpu = device >= kFirstLevelZeroDevice;
  const int8_t type = is_of_host(kind) ? kCpu : is_xpu ? kXpu : kCuda;
  memory.device = {type, static_cast<int8_t>(is_xpu ? device - kFirstLevelZeroDevice : device)};
  memory.layer = kDriverLayer;
  memory.size_is_requested = kind == kDriverMemory || kind == kDriverInPools;
  strncpy(memory.name, kDriverMemoryNames[kind], sizeof(memory.name) - 1);
  record_in(action, key, size_bytes, memory, caller ? driver_caller(caller) : Label{});
}

void driver_took(DriverKind kind, int device, uint64_t key, uint64_t size_bytes,
                 const void* caller) {
  Block old;
  const uint32_t library = driver_caller_number(caller);
  if (table_of(kind).put(key, {size_bytes, library, pack_place(kind, device)}, &old) ==
      LiveTable::kNoMemory) {
    return count_loss(kLostNoBuffer);  // its free would not be known either
  }
  record_driver(kRawAlloc, kind, device, key, size_bytes, caller);
}

DriverLink::Gone driver_gave(uint32_t kinds, uint64_t key) {
  Block block;
  LiveTable* const tables[] = {&g_addresses, &g_things, &g_reserved};
  for (LiveTable* table : tables) {
    if (!table->take(key, &block)) continue;
    const DriverKind kind = kind_of(block);
    if (!(kinds >> kind & 1)) {
      table->put(key, block, &block);
      continue;
    }
    record_driver(kRawFreeCompleted, kind, device_of(block), key, 0, nullptr);
    return {kind, device_of(block), block.size_bytes, address_of_caller(block.holder)};
  }
  return {kDriverKinds, -1, 0, nullptr};
}

void driver_refused(DriverKind kind, int device, uint64_t size_bytes, const void* caller) {
  record_driver(kRawOom, kind, device, 0, size_bytes, caller);
}

/// What is lost before the first event counts, too.
void driver_lost() {
  if (state() == kUnset) begin_recording();
  count_loss(kLostDriver);
}

void driver_level(DriverKind kind, int device, uint64_t key, bool (*read)(uint64_t, uint64_t*),
                  const void* caller) {
  Turn* turn = turn_of(key);
  if (!turn) return driver_lost();
  uint32_t nobody = 0;
  if (!__atomic_compare_exchange_n(&turn->state, &nobody, 1, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED)) {
    __atomic_store_n(&turn->state, 2, __ATOMIC_RELEASE);
    if (turn->key != key) driver_lost();  // who reads will read another thing again
    return;
  }
  for (uint32_t reading = 1;;) {
    uint64_t bytes = 0;
    if (read(key, &bytes)) change_level(kind, device, key, bytes, caller);
    if (__atomic_compare_exchange_n(&turn->state, &reading, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      return;
    }
    __atomic_store_n(&turn->state, 1, __ATOMIC_RELEASE);
    reading = 1;
  }
}

}  // namespace gpumemprof::probe

static const gpumemprof::probe::DriverLink kLink = {
    gpumemprof::probe::kDriverLinkVersion, gpumemprof::probe::driver_is_wanted,
    gpumemprof::probe::driver_took,        gpumemprof::probe::driver_gave,
    gpumemprof::probe::driver_refused,     gpumemprof::probe::driver_level,
    gpumemprof::probe::driver_created,     gpumemprof::probe::driver_retained,
    gpumemprof::probe::driver_released,    gpumemprof::probe::driver_mapped,
    gpumemprof::probe::driver_unmapped,    gpumemprof::probe::driver_lost};

extern "C" __attribute__((visibility("default"))) const gpumemprof::probe::DriverLink*
gpumemprof_driver_link(uint32_t version) {
  return version == gpumemprof::probe::kDriverLinkVersion ? &kLink : nullptr;
}
