#include <string.h>

#include "gpumemprof/gpumemprof.h"
#include "probe/attach.h"
#include "probe/counters.h"
#include "probe/recorder.h"
#include "probe/scopes.h"

namespace gpumemprof::probe {

static void change_state(State from, State to) {
  uint32_t expected = from;
  __atomic_compare_exchange_n(g_state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/// c10::Device keeps both in eight bits. Nothing that does not fit is a device.
static bool to_device(int type, int index, Device* out) {
  if (type < 0 || type > 127 || index < -1 || index > 127) return false;
  *out = {static_cast<int8_t>(type), static_cast<int8_t>(index)};
  return true;
}

/// What a slot's counters are now. All fields are read again until none changed meanwhile, a few
/// times.
static void read_slot(uint32_t slot, gpumemprof_counters* out) {
  const DeviceCounters& from = g_control->devices[slot];
  auto get = [](const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_SEQ_CST); };
  for (int i = 0; i < 10; ++i) {
    gpumemprof_counters now{get(from.live.low),       get(from.alloc_count),
                            get(from.free_count),     get(from.alloc_bytes),
                            get(from.free_bytes),     get(from.unknown_free_count),
                            get(from.untracked_count)};
    bool is_same = memcmp(out, &now, sizeof(now)) == 0;
    *out = now;
    if (i && is_same) return;
  }
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

int gpumemprof_counting_begin(void) { return hooks_are_in_place() && begin_counting(); }

int gpumemprof_read_counters(int device_type, int device_index, gpumemprof_counters* out) {
  memset(out, 0, sizeof(*out));
  Device device;
  if (!is_counting() || !to_device(device_type, device_index, &device)) return 0;
  uint32_t slot = device_slot(device, false);
  if (slot == kNoDevice) return 0;
  read_slot(slot, out);
  return 1;
}

uint64_t gpumemprof_scope_begin(int device_type, int device_index, const void* context) {
  Device device;
  return to_device(device_type, device_index, &device) ? begin_scope(device, context) : 0;
}
void gpumemprof_scope_switch_out(uint64_t id) { switch_scope_out(id); }
void gpumemprof_scope_switch_in(uint64_t id) { switch_scope_in(id); }
int gpumemprof_scope_end(uint64_t id, gpumemprof_scope_result* out) { return end_scope(id, out); }

int gpumemprof_attach(const char* folder_or_null, int flags) {
  return attach(folder_or_null, flags);
}
const char* gpumemprof_attach_error(void) { return attach_error(); }
}
