// The records behind scopes.h, shared by scopes.cc (ids, the device's list) and scopes_thread.cc
// (the thread's list, holders, blocks).
#pragma once

#include <stdint.h>

#include "probe/scopes.h"
#include "probe/scopes_pool.h"

namespace gpumemprof::probe {

enum ScopeState : uint32_t {
  kFree,
  kRunning,    // in the list of the thread `home`
  kSuspended,  // in no thread's list
  kMoving,     // on its way into one: the thread that moves it looks whether it was closed
  kClosed,     // ended by another thread than the one that has it, which gives the record back
};

struct alignas(64) Scope {
  Pair own;  // low: bytes of its own that are live. high: generation << 32 | how many blocks.
  uint64_t own_alloc_count, own_alloc_bytes, own_peak_bytes;
  uint64_t start_live_bytes, peak_bytes, start_untracked;
  uint64_t context;          // kNoContext: of the thread alone
  const ThreadScopes* home;  // an address to compare with, never followed
  uint32_t tid, device, state;
  uint32_t outer;         // in the thread's list
  uint32_t older, newer;  // in the device's
  uint32_t is_thread_only;
  uint32_t next;
};
static_assert(sizeof(Scope) == 128);

struct Holder {
  uint32_t references;
  uint32_t scope, generation;
  union {
    uint32_t parent;
    uint32_t next;
  };
};

extern Pool<Scope, 512, 2048> g_scopes;      // a million open at once
extern Pool<Holder, 4096, 16384> g_holders;  // 67 million

inline uint32_t generation_of(uint64_t high) { return static_cast<uint32_t>(high >> 32); }

/// Blocks allocations in a signal handler while the thread's own list changes.
class Busy {
 public:
  explicit Busy(ThreadScopes* thread) : thread_(thread) {
    thread_->busy = 1;
    __asm__ volatile("" ::: "memory");
  }
  ~Busy() {
    __asm__ volatile("" ::: "memory");
    thread_->busy = 0;
  }

 private:
  ThreadScopes* thread_;
};

/// The calling thread's, emptied if it is what a forked child has of its parent. Null inside
/// another change of it.
ThreadScopes* this_thread();

/// Makes a scope the top of the thread's list. Its holder goes on top of the thread's, if that is
/// valid, so each of a chain of nested calls costs the same.
void push(ThreadScopes* thread, uint32_t number);

/// Removes a scope from the thread's list. If it is not there (its thread died and another one has
/// its memory), nothing happens.
void pull(ThreadScopes* thread, uint32_t number);

/// Frees the record of a scope that is in no list any more.
void recycle(uint32_t number);

}  // namespace gpumemprof::probe
