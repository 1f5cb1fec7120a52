#include "gpumemprof/gpumemprof.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {

static void change_state(State from, State to) {
  uint32_t expected = from;
  __atomic_compare_exchange_n(g_state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

}  // namespace gpumemprof::probe

using namespace gpumemprof::probe;

extern "C" {
void gpumemprof_stop(void) {
  if (state() == kUnset) begin_recording();
  change_state(kRecording, kPaused);
}
void gpumemprof_start(void) { change_state(kPaused, kRecording); }
uint64_t gpumemprof_event_count(void) { return event_count(); }
}
