// What a thread runs, and whose the blocks are that it makes.
#include <string.h>

#include "probe/recorder.h"
#include "probe/scopes_context.h"
#include "probe/scopes_records.h"

namespace gpumemprof::probe {

constinit Pool<Scope, 512, 2048> g_scopes{};
constinit Pool<Holder, 4096, 16384> g_holders{};
thread_local ThreadScopes t_scopes __attribute__((tls_model("initial-exec")));

namespace {

/// Whether the scope that `own` was read from is still the one that the holder means. (A holder
/// that was made while another thread ended the scope has generation 0, and so has an ended scope.)
bool is_of(const Holder* holder, const Pair& own) {
  return holder->generation != 0 && generation_of(own.high) == holder->generation;
}

bool counts_in(const Scope* scope, uint64_t context) {
  return scope->context == kNoContext || scope->context == context;
}

/// Another thread may still look at the same word as `next`, in a take() that will find it
/// nonsense.
void set_parent(Holder* holder, uint32_t parent) {
  __atomic_store_n(&holder->parent, parent, __ATOMIC_RELAXED);
}

uint32_t make_holder(uint32_t number, uint32_t parent) {
  uint32_t made = g_holders.take(&g_control->holder_pool);
  if (!made) return 0;
  Holder* holder = g_holders.at(made);
  holder->scope = number;
  holder->generation =
      generation_of(__atomic_load_n(&g_scopes.at(number)->own.high, __ATOMIC_RELAXED));
  set_parent(holder, parent);
  __atomic_store_n(&holder->references, 1, __ATOMIC_RELEASE);
  return made;
}

void forget_holder(ThreadScopes* thread) {
  if (thread->holder) drop_holder(thread->holder);
  thread->holder = thread->is_holder_good = 0;
}

void unlink(ThreadScopes* thread, uint32_t* link) {
  Scope* scope = g_scopes.at(*link);
  thread->with_context -= scope->context != kNoContext;
  thread->length -= 1;
  *link = scope->outer;
}

/// Makes the thread's holder for `context`, and takes out what other threads have closed. False:
/// no memory.
bool remake_holder(ThreadScopes* thread, uint64_t context) {
  Busy busy(thread);
  forget_holder(thread);
  uint32_t first = 0, last = 0;
  for (uint32_t* link = &thread->running; *link;) {
    uint32_t number = *link;
    Scope* scope = g_scopes.at(number);
    if (__atomic_load_n(&scope->state, __ATOMIC_ACQUIRE) == kClosed) {
      unlink(thread, link);
      recycle(number);
      continue;
    }
    if (counts_in(scope, context)) {
      uint32_t made = make_holder(number, 0);
      if (!made) {
        if (first) drop_holder(first);
        return false;
      }
      if (last) set_parent(g_holders.at(last), made);
      if (!first) first = made;
      last = made;
    }
    link = &scope->outer;
  }
  thread->holder = first;
  thread->holder_context = context;
  thread->is_holder_good = 1;
  return true;
}

/// Other threads may end scopes of a thread that never allocates, and in any order. Whatever they
/// do, less than half of the list is closed, and a push costs a constant on average: between two
/// sweeps the list has doubled.
void sweep(ThreadScopes* thread) {
  constexpr uint32_t kShort = 16;
  if (thread->length < kShort || thread->length < thread->sweep_at) return;
  remake_holder(thread, thread->holder_context);
  thread->sweep_at = 2 * thread->length;
}

}  // namespace

ThreadScopes* this_thread() {
  ThreadScopes* thread = &t_scopes;
  if (thread->busy) return nullptr;
  uint32_t now = counting_incarnation();
  if (thread->incarnation != now) {
    memset(thread, 0, sizeof(*thread));
    thread->incarnation = now;
    thread->tid = g_sandboxed ? 0 : static_cast<uint32_t>(sys(SYS_gettid));
  }
  return thread;
}

void recycle(uint32_t number) {
  Scope* scope = g_scopes.at(number);
  __atomic_store_n(&scope->state, kFree, __ATOMIC_RELAXED);
  g_scopes.give(&g_control->scope_pool, number);
}

void push(ThreadScopes* thread, uint32_t number) {
  sweep(thread);
  Busy busy(thread);
  Scope* scope = g_scopes.at(number);
  __atomic_store_n(&scope->home, thread, __ATOMIC_RELAXED);
  __atomic_store_n(&scope->tid, thread->tid, __ATOMIC_RELAXED);
  scope->outer = thread->running;
  if (!thread->running) {
    forget_holder(thread);
    thread->holder_context = kNoContext;
    thread->is_holder_good = 1;  // that there is none
  }
  if (scope->context != kNoContext && thread->with_context == 0) {
    thread->holder_context = scope->context;  // a holder of scopes without one is good in any
  }
  thread->with_context += scope->context != kNoContext;
  if (thread->is_holder_good && counts_in(scope, thread->holder_context)) {
    uint32_t made = make_holder(number, thread->holder);
    thread->holder = made ? made : thread->holder;
    thread->is_holder_good = made != 0;
  }
  thread->running = number;
  thread->length += 1;
}

void pull(ThreadScopes* thread, uint32_t number) {
  Busy busy(thread);
  uint32_t* link = &thread->running;
  while (*link && *link != number) link = &g_scopes.at(*link)->outer;
  if (!*link) return;
  Scope* scope = g_scopes.at(number);
  unlink(thread, link);
  if (!thread->is_holder_good || !counts_in(scope, thread->holder_context)) return;
  uint32_t old = thread->holder;
  if (old && g_holders.at(old)->scope == number) {
    thread->holder = g_holders.at(old)->parent;
    if (thread->holder) {
      __atomic_fetch_add(&g_holders.at(thread->holder)->references, 1, __ATOMIC_RELAXED);
    }
    drop_holder(old);
  } else {
    forget_holder(thread);
  }
}

uint32_t hold_running(uint32_t, bool* is_complete) {
  ThreadScopes* thread = &t_scopes;
  if (thread->incarnation != counting_incarnation()) return this_thread(), 0;
  if (thread->busy) return *is_complete = false, 0;
  uint64_t context = thread->with_context ? current_context() : thread->holder_context;
  if ((!thread->is_holder_good || context != thread->holder_context) &&
      !remake_holder(thread, context)) {
    return *is_complete = false, 0;
  }
  if (!thread->holder) return 0;
  __atomic_fetch_add(&g_holders.at(thread->holder)->references, 1, __ATOMIC_RELAXED);
  return thread->holder;
}

void drop_holder(uint32_t number) {
  while (number) {
    Holder* holder = g_holders.at(number);
    if (__atomic_sub_fetch(&holder->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    uint32_t parent = holder->parent;
    g_holders.give(&g_control->holder_pool, number);
    number = parent;
  }
}

void count_own_alloc(const Block& block) {
  for (uint32_t number = block.holder; number;) {
    const Holder* holder = g_holders.at(number);
    Scope* scope = g_scopes.at(holder->scope);
    number = holder->parent;
    if (scope->device != block.device) continue;
    Pair seen = glance(&scope->own), next;
    do {
      next = {seen.low + block.size_bytes, seen.high + 1};
    } while (is_of(holder, seen) && !exchange_pair(&scope->own, &seen, next));
    if (!is_of(holder, seen)) {  // ended by another thread
      t_scopes.is_holder_good = 0;
      continue;
    }
    // The record is not used again before this thread has taken it out of its list.
    __atomic_fetch_add(&scope->own_alloc_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&scope->own_alloc_bytes, block.size_bytes, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&scope->own_peak_bytes, __ATOMIC_RELAXED);
    while (next.low > peak &&
           !__atomic_compare_exchange_n(&scope->own_peak_bytes, &peak, next.low, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

void release_block(const Block& block) {
  for (uint32_t number = block.holder; number;) {
    const Holder* holder = g_holders.at(number);
    Scope* scope = g_scopes.at(holder->scope);
    // Of another generation's device: then the exchange fails for the generation.
    if (__atomic_load_n(&scope->device, __ATOMIC_RELAXED) == block.device) {
      Pair seen = glance(&scope->own);
      while (is_of(holder, seen) &&
             !exchange_pair(&scope->own, &seen, {seen.low - block.size_bytes, seen.high - 1})) {
      }
    }
    number = holder->parent;
  }
  drop_holder(block.holder);
}

}  // namespace gpumemprof::probe
