// A call that the program's interpreter makes once so many events have passed: how the Python half
// gets its turn without a thread, a timer or a signal.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// Events until the call; 0 or less: none is wanted.
extern int64_t g_events_until_call;

/// Hands `call` and `argument` to `add` (Py_AddPendingCall) after `events` more events of this
/// process, once, on the thread of the event. A later request takes the place of an earlier one.
void call_after(uint64_t events, int (*add)(int (*)(void*), void*), int (*call)(void*),
                void* argument);

void count_toward_call();

/// After each event. All that it costs where nobody asked is the look at one number.
inline void one_more_event() {
  if (__builtin_expect(__atomic_load_n(&g_events_until_call, __ATOMIC_RELAXED) > 0, 0)) {
    count_toward_call();
  }
}

}  // namespace gpumemprof::probe
