// Maps of the program's (mmap, munmap, mremap), which may be unmapped in parts.
//
// A slot a map, without a lock. Who changes one marks it first (the lowest bit of `begin`, which is
// a page's address); another thread that unmaps a part of the same map at that moment does not wait,
// and that is counted as lost. What is left of a map that is cut is told again, as a block of the
// line that cut it. In memory that a forked child finds empty.
#include <string.h>

#include "base/system_page.h"
#include "probe/hooks/host/host.h"
#include "probe/live_table.h"
#include "probe/program_end.h"
#include "probe/recorder.h"
#include "probe/storage.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

constexpr uint32_t kMostMaps = 16384;
constexpr uint64_t kBeingChanged = 1;

struct Map {
  uint64_t begin;  // 0: free
  uint64_t end;
  uint64_t memory;
};
struct Maps {
  uint32_t used;  // slots from here on were never used
  Map slots[kMostMaps];
};
Maps* g_maps;

Maps* maps() {
  Maps* known = __atomic_load_n(&g_maps, __ATOMIC_ACQUIRE);
  if (known) return known;
  auto* fresh = static_cast<Maps*>(map_emptied_by_fork(sizeof(Maps)));
  if (!fresh) return nullptr;
  if (__atomic_compare_exchange_n(&g_maps, &known, fresh, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    return fresh;
  }
  sys(SYS_munmap, sys_ptr(fresh), sizeof(Maps));  // another thread was faster
  return known;
}

bool put_map(uint64_t begin, uint64_t end, uint32_t memory) {
  Maps* all = maps();
  if (!all) return false;
  for (uint32_t i = 0; i < kMostMaps; ++i) {
    Map& slot = all->slots[i];
    uint64_t found = __atomic_load_n(&slot.begin, __ATOMIC_RELAXED);
    if (found != 0 || !__atomic_compare_exchange_n(&slot.begin, &found, kBeingChanged, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      continue;
    }
    uint32_t used = __atomic_load_n(&all->used, __ATOMIC_RELAXED);
    while (used <= i && !__atomic_compare_exchange_n(&all->used, &used, i + 1, false,
                                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    slot.end = end, slot.memory = memory;
    __atomic_store_n(&slot.begin, begin, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

void tell_map(uint64_t begin, uint64_t end, uint32_t memory, const char* file) {
  if (!put_map(begin, end, memory)) return count_loss(kLostNoBuffer);
  record_host(kRawAlloc, static_cast<HostMemory>(memory), begin, end - begin, file);
}

/// What /proc says of a descriptor; null where nothing unusual may be called.
const char* name_of_file(int fd, char (&out)[1024]) {
  if (g_sandboxed || is_filtered()) return nullptr;
  char path[32] = "/proc/self/fd/";
  char digits[12];
  int n = 0;
  for (auto rest = static_cast<uint32_t>(fd); n == 0 || rest; rest /= 10)
    digits[n++] = static_cast<char>('0' + rest % 10);
  size_t at = strlen(path);
  while (n > 0) path[at++] = digits[--n];
  path[at] = 0;
  constexpr int kCurrentFolder = -100;  // AT_FDCWD
  const long length =
      sys(SYS_readlinkat, kCurrentFolder, sys_ptr(path), sys_ptr(out), sizeof(out) - 1);
  if (length <= 0) return nullptr;
  out[length] = 0;
  return out;
}

uint64_t page_end(uint64_t address, uint64_t size) {
  const uint64_t page = system_page();
  return (address + size + page - 1) & ~(page - 1);
}

}  // namespace

void host_mapped(void* begin, size_t size_bytes, int fd, const void* caller) {
  if (!host_is_wanted() || is_left(caller, fd >= 0)) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(begin);
  char text[1024];
  tell_map(address, page_end(address, size_bytes), fd < 0 ? kHostAnonymousMaps : kHostFileMaps,
           fd < 0 ? nullptr : name_of_file(fd, text));
}

size_t host_unmapped(void* from, size_t size_bytes, uint32_t* memory) {
  Maps* all = __atomic_load_n(&g_maps, __ATOMIC_ACQUIRE);
  if (!all || !host_is_wanted()) return 0;
  const uint64_t first = reinterpret_cast<uintptr_t>(from), last = page_end(first, size_bytes);
  size_t found = 0;
  const uint32_t used = __atomic_load_n(&all->used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; ++i) {
    Map& slot = all->slots[i];
    uint64_t begin = __atomic_load_n(&slot.begin, __ATOMIC_ACQUIRE);
    const uint64_t end = __atomic_load_n(&slot.end, __ATOMIC_RELAXED);
    if (begin >= last || end <= first || begin <= kBeingChanged) continue;
    if (begin & kBeingChanged ||
        !__atomic_compare_exchange_n(&slot.begin, &begin, begin | kBeingChanged, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      count_loss(kLostReentered);
      continue;
    }
    const auto of = static_cast<uint32_t>(slot.memory);
    *memory = of;
    found += (end < last ? end : last) - (begin > first ? begin : first);
    look_for_program_end();
    record_host(kRawFreeCompleted, static_cast<HostMemory>(of), begin, 0);
    __atomic_store_n(&slot.begin, 0, __ATOMIC_RELEASE);
    if (begin < first) tell_map(begin, first, of, nullptr);
    if (end > last) tell_map(last, end, of, nullptr);
  }
  return found;
}

void host_moved(void* begin, size_t size_bytes, uint32_t memory) {
  if (!host_is_wanted() || memory >= kHostMemories) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(begin);
  tell_map(address, page_end(address, size_bytes), memory, nullptr);
}

}  // namespace gpumemprof::probe
