#include "probe/call_after.h"

#include "probe/hot.h"

namespace gpumemprof::probe {
namespace {

struct Wanted {
  int (*add)(int (*)(void*), void*);
  int (*call)(void*);
  void* argument;
};
Wanted g_wanted;

}  // namespace

alignas(64) HOT_DATA int64_t g_events_until_call;  // so that these words begin with a line

void call_after(uint64_t events, int (*add)(int (*)(void*), void*), int (*call)(void*),
                void* argument) {
  __atomic_store_n(&g_events_until_call, 0, __ATOMIC_SEQ_CST);
  if (!add || !call || events == 0 || events > INT64_MAX) return;
  g_wanted = {add, call, argument};
  __atomic_store_n(&g_events_until_call, static_cast<int64_t>(events), __ATOMIC_RELEASE);
}

__attribute__((noinline, cold)) void count_toward_call() {
  // Exactly one thread sees it become 0; until the next request nobody counts.
  if (__atomic_sub_fetch(&g_events_until_call, 1, __ATOMIC_ACQ_REL) == 0) {
    g_wanted.add(g_wanted.call, g_wanted.argument);
  }
}

}  // namespace gpumemprof::probe
