// Physical memory apart from addresses. A handle's memory is gone when it was released as often as
// it was made or retained *and* nothing maps it: many programs release right after mapping, and the
// driver may then use the handle's number again. So what is followed has a number of its own here.
#include "probe/counters.h"
#include "probe/hooks/driver/blocks.h"
#include "probe/live_table.h"
#include "probe/recorder.h"
#include "probe/scopes_pool.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

struct Physical {
  uint64_t uses;  // references << 32 | mappings: who makes it 0 ends it
  uint32_t next;  // the pool's
  int32_t device;
  bool is_own;
};
constexpr uint64_t kReference = uint64_t{1} << 32, kMapping = 1;

Pool<Physical, 8192, 256> g_pool;
/// Emptied by a fork, as what the pool maps is.
PoolHead* g_head;
LiveTable g_handles;   // handle -> number
LiveTable g_mappings;  // address -> number, size

PoolHead* head() {
  PoolHead* now = __atomic_load_n(&g_head, __ATOMIC_ACQUIRE);
  if (now) return now;
  auto* fresh = static_cast<PoolHead*>(map_emptied_by_fork(sizeof(PoolHead)));
  if (!fresh) return nullptr;
  return __atomic_compare_exchange_n(&g_head, &now, fresh, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)
             ? fresh
             : now;
}

/// What names the physical memory in the recording.
uint64_t key_of(uint32_t number) { return uint64_t{number} << 12; }

/// After the last use.
void end(uint32_t number) {
  const Physical* one = g_pool.at(number);
  record_driver(kRawFreeCompleted, one->is_own ? kDriverHandles : kDriverImported, one->device,
                key_of(number), 0, nullptr);
  g_pool.give(head(), number);
}

/// Answers what is left of the uses; 0: the caller ends it.
uint64_t less(uint32_t number, uint64_t use) {
  return __atomic_sub_fetch(&g_pool.at(number)->uses, use, __ATOMIC_ACQ_REL);
}

void drop_mapping(uint32_t number) {
  if (less(number, kMapping) == 0) end(number);
}

}  // namespace

void driver_created(uint64_t handle, int device, uint64_t size_bytes, bool is_own,
                    const void* caller) {
  PoolHead* const list = head();
  const uint32_t number = list ? g_pool.take(list) : 0;
  if (!number) return count_loss(kLostNoBuffer);
  Physical* one = g_pool.at(number);
  one->device = device, one->is_own = is_own;
  __atomic_store_n(&one->uses, kReference, __ATOMIC_RELEASE);
  Block old;
  if (g_handles.put(handle, {size_bytes, number, 0}, &old) == LiveTable::kNoMemory) {
    g_pool.give(list, number);
    return count_loss(kLostNoBuffer);
  }
  record_driver(kRawAlloc, is_own ? kDriverHandles : kDriverImported, device, key_of(number),
                size_bytes, caller);
}

/// Only of a handle that is held already: one that was given back and is asked for anew by an
/// address stays with its mapping, which is what keeps the memory.
void driver_retained(uint64_t handle) {
  Block known;
  if (!g_handles.find(handle, &known)) return;
  __atomic_add_fetch(&g_pool.at(known.holder)->uses, kReference, __ATOMIC_ACQ_REL);
}

void driver_released(uint64_t handle) {
  Block known;
  if (!g_handles.find(handle, &known)) return;
  // Of several threads that release it at once one takes the last reference.
  const uint64_t left = less(known.holder, kReference);
  Block last;
  if (left < kReference) g_handles.take(handle, &last);
  if (left == 0) end(known.holder);
}

void driver_mapped(uint64_t address, uint64_t size_bytes, uint64_t handle, const void* caller) {
  Block known;
  if (!g_handles.find(handle, &known)) return;
  Physical* one = g_pool.at(known.holder);
  __atomic_add_fetch(&one->uses, kMapping, __ATOMIC_ACQ_REL);
  Block old;
  if (g_mappings.put(address, {size_bytes, known.holder, 0}, &old) == LiveTable::kNoMemory) {
    count_loss(kLostNoBuffer);
    return drop_mapping(known.holder);
  }
  record_driver(kRawAlloc, kDriverMapped, one->device, address, size_bytes, caller);
}

void driver_unmapped(uint64_t address, uint64_t size_bytes) {
  for (uint64_t at = address; at < address + size_bytes;) {
    Block mapping;
    if (!g_mappings.take(at, &mapping) || mapping.size_bytes == 0) return;
    record_driver(kRawFreeCompleted, kDriverMapped, g_pool.at(mapping.holder)->device, at, 0,
                  nullptr);
    at += mapping.size_bytes;
    drop_mapping(mapping.holder);
  }
}

}  // namespace gpumemprof::probe
