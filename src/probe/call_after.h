// A call that the program's interpreter makes once after a number of events: how the Python half
// runs without a thread, a timer or a signal.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// Events until the call, above kBlockBits bits of allocations minus frees since, so that one
/// instruction counts both. Below kOneEvent no call is wanted.
extern int64_t g_until_call;
constexpr int kBlockBits = 24;
constexpr int64_t kOneEvent = int64_t{1} << kBlockBits;

/// Passes `call` and `argument` to `add` (Py_AddPendingCall) after `events` more events of this
/// process, once, on the thread of the event. A later request replaces an earlier one. Blocks and
/// maps of the host do not count: between them the growth of a framework's blocks is not seen.
void call_after(uint64_t events, int (*add)(int (*)(void*), void*), int (*call)(void*),
                void* argument);

/// Allocations minus frees among the events before the last call. Wraps beyond 2^23.
int64_t blocks_until_call();

void count_toward_call(int64_t blocks);

/// After each event; `blocks`: 1 for an allocation, -1 for a free, else 0. If no call is wanted it
/// costs one load.
inline void one_more_event(int64_t blocks) {
  if (__builtin_expect(__atomic_load_n(&g_until_call, __ATOMIC_RELAXED) >= kOneEvent, 0)) {
    count_toward_call(blocks);
  }
}

}  // namespace gpumemprof::probe
