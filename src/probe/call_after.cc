#include "probe/call_after.h"

#include "probe/hot.h"

// Python's; null where it is not loaded with the program.
extern "C" __attribute__((weak)) int Py_IsInitialized(void);

namespace gpumemprof::probe {
namespace {

struct Wanted {
  int (*add)(int (*)(void*), void*);
  int (*call)(void*);
  void* argument;
};
Wanted g_wanted;

constexpr int64_t kNoBlocks = kOneEvent / 2;

}  // namespace

alignas(64) HOT_DATA int64_t g_until_call;  // so that these words begin with a line

void call_after(uint64_t events, int (*add)(int (*)(void*), void*), int (*call)(void*),
                void* argument) {
  __atomic_store_n(&g_until_call, 0, __ATOMIC_SEQ_CST);
  if (!add || !call || events == 0 || events > INT64_MAX / kOneEvent) return;
  g_wanted = {add, call, argument};
  __atomic_store_n(&g_until_call, static_cast<int64_t>(events) * kOneEvent + kNoBlocks,
                   __ATOMIC_RELEASE);
}

int64_t blocks_until_call() {
  return (__atomic_load_n(&g_until_call, __ATOMIC_RELAXED) & (kOneEvent - 1)) - kNoBlocks;
}

__attribute__((noinline, cold)) void count_toward_call(int64_t blocks) {
  // Exactly one thread sees the events become 0; until the next request nobody counts.
  const int64_t left = __atomic_add_fetch(&g_until_call, blocks - kOneEvent, __ATOMIC_ACQ_REL);
  if (left >> kBlockBits == 0) {
    // A free of the program's exit handlers: Py_AddPendingCall has no interpreter to ask any more.
    if (Py_IsInitialized && !Py_IsInitialized()) return;
    g_wanted.add(g_wanted.call, g_wanted.argument);
  }
}

}  // namespace gpumemprof::probe
