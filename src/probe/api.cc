#include <string.h>

#include "format/format.h"
#include "gpumemprof/gpumemprof.h"
#include "probe/attach.h"
#include "probe/call_after.h"
#include "probe/copies.h"
#include "probe/counters.h"
#include "probe/modules.h"
#include "probe/phases.h"
#include "probe/program_end.h"
#include "probe/python_arenas.h"
#include "probe/recorder.h"
#include "probe/scopes.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

static_assert(GPUMEMPROF_ROLE_PARAMETER == format::kRoleParameter &&
              GPUMEMPROF_ROLE_BUFFER == format::kRoleBuffer &&
              GPUMEMPROF_ROLE_GRADIENT == format::kRoleGradient &&
              GPUMEMPROF_ROLE_OPTIMIZER_STATE == format::kRoleOptimizerState);

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

static void mark_role(uintptr_t address, uint64_t value) {
  if (state() != kOff) record_mark(format::kMarkRole, address, value, nullptr, 0);
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
void gpumemprof_set_layer(const char* name) { set_layer(name); }
void gpumemprof_call_after(uint64_t events, int (*add)(int (*)(void*), void*), int (*call)(void*),
                           void* argument) {
  call_after(events, add, call, argument);
}
int64_t gpumemprof_blocks_until_call(void) { return blocks_until_call(); }
int64_t gpumemprof_python_arenas(const char** why) { return python_arenas(why); }

uint64_t gpumemprof_phase_begin(const char* name) { return begin_phase(name); }
void gpumemprof_phase_end(uint64_t phase) { end_phase(phase); }
void gpumemprof_step_end(void) { end_step(); }
void gpumemprof_mark_storage(const void* address, int role, const char* name) {
  if (role < GPUMEMPROF_ROLE_PARAMETER || role > GPUMEMPROF_ROLE_OPTIMIZER_STATE) return;
  if (!address || state() == kOff) return;
  if (role <= GPUMEMPROF_ROLE_BUFFER) watch_copies_of(reinterpret_cast<uintptr_t>(address));
  record_mark(gpumemprof::format::kMarkRole, reinterpret_cast<uintptr_t>(address),
              static_cast<uint64_t>(role), name, name ? length_of_text(name, kMostMarkText) : 0);
}
void gpumemprof_unmark_storage(const void* address) {
  if (address) mark_role(reinterpret_cast<uintptr_t>(address), gpumemprof::format::kRoleNone);
}
void gpumemprof_program_ends(void) { program_has_ended(); }
void gpumemprof_roles_hold(void) { mark_role(0, gpumemprof::format::kRolesHold); }
void gpumemprof_mark_module(const void* object, const char* path) { name_module(object, path); }
void gpumemprof_when_module_is_new(int (*call)(void*), void* argument) {
  await_program_end();
  when_module_is_new(call, argument);
}

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
