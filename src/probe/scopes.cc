#include "probe/scopes.h"

#include <string.h>

#include "probe/recorder.h"
#include "probe/scopes_context.h"
#include "probe/scopes_records.h"

namespace gpumemprof::probe {
namespace {

// In ordinary memory, so that a child goes on from here and never uses a generation of its parent.
uint32_t g_generation;

void pause() {
#if defined(__x86_64__)
  __asm__ volatile("pause");
#else
  __asm__ volatile("yield");
#endif
}

/// False after about a second: its holder has long been stopped by the scheduler. After the program
/// has restricted its own system calls, that second is counted in turns.
bool lock(DeviceScopes* list) {
  uint64_t begin_ns = 0;
  for (uint32_t turns = 0; turns < 50000000; ++turns) {
    if (!__atomic_exchange_n(&list->lock, 1, __ATOMIC_ACQUIRE)) return true;
    pause();
    if (turns < 100 || g_sandboxed) continue;
    if (!begin_ns) begin_ns = monotonic_ns();
    if (monotonic_ns() - begin_ns > 1000000000) return false;
    sys(SYS_sched_yield);  // let it run
  }
  return false;
}
void unlock(DeviceScopes* list) { __atomic_store_n(&list->lock, 0, __ATOMIC_RELEASE); }

// ---- The device's list -------------------------------------------------------------------------

/// Gives the high water since the last call to the newest scope. Under the lock.
Pair fold_high_water(uint32_t device) {
  Pair taken = take_high_water(device);
  if (uint32_t newest = g_control->scopes[device].newest) {
    Scope* scope = g_scopes.at(newest);
    if (taken.high > scope->peak_bytes) scope->peak_bytes = taken.high;
  }
  return taken;
}

bool enter_device(uint32_t number) {
  Scope* scope = g_scopes.at(number);
  DeviceScopes* list = &g_control->scopes[scope->device];
  if (!lock(list)) return false;
  scope->start_live_bytes = scope->peak_bytes = fold_high_water(scope->device).low;
  scope->start_untracked =
      __atomic_load_n(&g_control->devices[scope->device].untracked_count, __ATOMIC_RELAXED);
  scope->older = list->newest;
  scope->newer = 0;
  if (list->newest) g_scopes.at(list->newest)->newer = number;
  list->newest = number;
  unlock(list);
  return true;
}

/// The device's part of the result; takes the scope out of the device's list. Under the lock.
void leave_device(uint32_t number, gpumemprof_scope_result* out) {
  Scope* scope = g_scopes.at(number);
  DeviceScopes* list = &g_control->scopes[scope->device];
  out->start_live_bytes = scope->start_live_bytes;
  out->end_live_bytes = fold_high_water(scope->device).low;
  for (uint32_t i = list->newest; i; i = g_scopes.at(i)->older) {
    uint64_t peak = g_scopes.at(i)->peak_bytes;
    if (peak > out->peak_live_bytes) out->peak_live_bytes = peak;
    if (i == number) break;
  }
  out->untracked_count =
      __atomic_load_n(&g_control->devices[scope->device].untracked_count, __ATOMIC_RELAXED) -
      scope->start_untracked;
  if (scope->older) {
    Scope* older = g_scopes.at(scope->older);
    if (scope->peak_bytes > older->peak_bytes) older->peak_bytes = scope->peak_bytes;
    older->newer = scope->newer;
  }
  if (scope->newer) g_scopes.at(scope->newer)->older = scope->older;
  if (list->newest == number) list->newest = scope->older;
}

// ---- Ids ---------------------------------------------------------------------------------------

/// The number of an open scope, 0 where the id is none.
uint32_t find(uint64_t id) {
  uint32_t number = static_cast<uint32_t>(id);
  if (!is_counting() || !g_scopes.knows(&g_control->scope_pool, number)) return 0;
  uint64_t high = __atomic_load_n(&g_scopes.at(number)->own.high, __ATOMIC_ACQUIRE);
  return generation_of(high) == generation_of(id) && generation_of(id) ? number : 0;
}

/// True for the one caller that ends the generation; `*last` is then what the scope had.
bool end_generation(Scope* scope, uint32_t generation, Pair* last) {
  *last = glance(&scope->own);
  do {
    if (generation_of(last->high) != generation) return false;
  } while (!exchange_pair(&scope->own, last, {0, 0}));
  return true;
}

/// From what the caller has seen; false: `*seen` is what is there instead.
bool change_state(Scope* scope, uint32_t* seen, ScopeState to) {
  return __atomic_compare_exchange_n(&scope->state, seen, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

/// To be asked after the state was seen to be kRunning: who sees that sees the home it runs in, and
/// only a scope's home moves it on from there. A suspended scope still names the home that it left,
/// while another thread may be taking it.
bool is_home(const Scope* scope, const ThreadScopes* thread) {
  return __atomic_load_n(&scope->home, __ATOMIC_RELAXED) == thread;
}

bool is_dead(uint32_t tid) {
  return !g_sandboxed && sys(SYS_tgkill, sys(SYS_getpid), tid, 0) == -3 /* ESRCH */;
}

/// Frees the record of an ended scope, or leaves that to the thread that has it. Every change is
/// from the state that was seen, so exactly one of the two gives the record back. Sequentially
/// consistent with switch_scope_in: after the generation's end no other thread can begin to move
/// the scope.
void leave_thread(uint32_t number) {
  Scope* scope = g_scopes.at(number);
  uint32_t now = __atomic_load_n(&scope->state, __ATOMIC_SEQ_CST);
  while (now != kFree && now != kClosed) {
    if (now == kRunning && is_home(scope, &t_scopes)) {
      if (ThreadScopes* thread = this_thread()) {
        pull(thread, number);
        return recycle(number);
      }
    }
    bool is_nobodys = now == kSuspended ||
                      (now == kRunning && is_dead(__atomic_load_n(&scope->tid, __ATOMIC_RELAXED)));
    if (change_state(scope, &now, is_nobodys ? kFree : kClosed)) {
      if (is_nobodys) recycle(number);
      return;
    }
  }
}

}  // namespace

uint64_t begin_scope(Device device, const void* asked_context) {
  if (!is_counting()) return 0;
  uint32_t slot = device_slot(device, true);
  ThreadScopes* thread = this_thread();
  uint32_t number = thread && slot != kNoDevice ? g_scopes.take(&g_control->scope_pool) : 0;
  if (!number) return 0;
  Scope* scope = g_scopes.at(number);
  scope->context = kNoContext;
  if (asked_context && know_contexts()) {
    scope->context = asked_context == GPUMEMPROF_CURRENT_CONTEXT
                         ? current_context()
                         : reinterpret_cast<uintptr_t>(asked_context);
  }
  scope->is_thread_only = asked_context && scope->context == kNoContext;
  __atomic_store_n(&scope->device, slot, __ATOMIC_RELAXED);  // release_block may look at it
  scope->own_alloc_count = scope->own_alloc_bytes = scope->own_peak_bytes = 0;
  __atomic_store_n(&scope->own.low, 0, __ATOMIC_RELAXED);  // and at this, too
  uint32_t generation = __atomic_add_fetch(&g_generation, 1, __ATOMIC_RELAXED);
  if (!generation) generation = __atomic_add_fetch(&g_generation, 1, __ATOMIC_RELAXED);
  if (!enter_device(number)) return recycle(number), 0;
  __atomic_store_n(&scope->own.high, uint64_t{generation} << 32, __ATOMIC_RELEASE);
  push(thread, number);
  __atomic_store_n(&scope->state, kRunning, __ATOMIC_RELEASE);
  return uint64_t{generation} << 32 | number;
}

void switch_scope_out(uint64_t id) {
  uint32_t number = find(id);
  ThreadScopes* thread = number ? this_thread() : nullptr;
  if (!thread) return;
  Scope* scope = g_scopes.at(number);
  uint32_t running = kRunning;
  if (__atomic_load_n(&scope->state, __ATOMIC_ACQUIRE) != running || !is_home(scope, thread))
    return;
  pull(thread, number);
  if (!change_state(scope, &running, kSuspended) && running == kClosed) recycle(number);
}

void switch_scope_in(uint64_t id) {
  uint32_t number = find(id);
  ThreadScopes* thread = number ? this_thread() : nullptr;
  if (!thread) return;
  Scope* scope = g_scopes.at(number);
  uint32_t suspended = kSuspended, moving = kMoving;
  if (!change_state(scope, &suspended, kMoving)) return;
  // Ended since find(), and perhaps another scope's record by now.
  bool is_gone =
      generation_of(__atomic_load_n(&scope->own.high, __ATOMIC_SEQ_CST)) != generation_of(id);
  if (!is_gone) push(thread, number);
  if (change_state(scope, &moving, is_gone ? kSuspended : kRunning)) return;
  if (!is_gone) pull(thread, number);  // closed while it moved
  recycle(number);
}

int end_scope(uint64_t id, gpumemprof_scope_result* out) {
  gpumemprof_scope_result result;
  memset(&result, 0, sizeof(result));
  memset(out, 0, sizeof(*out));
  uint32_t number = find(id);
  if (!number) return 0;
  Scope* scope = g_scopes.at(number);
  // Ended since find(), it may be another scope's record by now: then the generation says so below.
  DeviceScopes* list = &g_control->scopes[__atomic_load_n(&scope->device, __ATOMIC_RELAXED)];
  if (!lock(list)) return 0;
  Pair last;
  if (!end_generation(scope, generation_of(id), &last)) return unlock(list), 0;
  leave_device(number, &result);
  unlock(list);
  result.own_alloc_count = __atomic_load_n(&scope->own_alloc_count, __ATOMIC_RELAXED);
  result.own_alloc_bytes = __atomic_load_n(&scope->own_alloc_bytes, __ATOMIC_RELAXED);
  uint64_t live_count = static_cast<uint32_t>(last.high);
  // Of a block that another thread is just making, one may be counted and the other not yet.
  if (result.own_alloc_count < live_count) result.own_alloc_count = live_count;
  if (result.own_alloc_bytes < last.low) result.own_alloc_bytes = last.low;
  result.own_free_count = result.own_alloc_count - live_count;
  result.own_free_bytes = result.own_alloc_bytes - last.low;
  result.own_peak_bytes =
      static_cast<int64_t>(__atomic_load_n(&scope->own_peak_bytes, __ATOMIC_RELAXED));
  int answer = GPUMEMPROF_SCOPE_OK | (scope->is_thread_only ? GPUMEMPROF_SCOPE_THREAD_ONLY : 0);
  leave_thread(number);
  *out = result;
  return answer;
}

}  // namespace gpumemprof::probe
