// Scopes: what the device did while one was open, and what its own thread and context did.
//
//   a thread's running scopes        holders                           live blocks
//
//   top ─▶ inner ─▶ outer        ┌─▶ [inner] ──parent──▶ [outer] ◀──── block 0x7f…40
//                                │       ▲
//                   thread's ────┘       └──────────────────────────── block 0x7f…80
//
// A holder stands for the scopes that an allocation belongs to: one of them, and a parent for the
// rest. A thread has one for its running scopes of the current context, made at the first
// allocation after these have changed; every block that is live points to the one that was there
// when it was made, and a free goes through the scopes of the block's holder. A holder is 16 bytes
// and lives as long as a block or another holder refers to it, so a scope can end, and its record
// be used again, while blocks that it allocated live on: the holder names the scope by a generation
// that no other scope ever has, and a scope's own live bytes stand in one 128-bit word with its
// generation, so that an ended scope cannot be added to.
//
// The device's peak is kept by the newest open scope alone: it takes the device's high water
// whenever a scope of the device begins or ends, and hands it to the next older one when it ends
// itself. A scope's peak is the highest of its own and those of all newer ones. So an allocation
// has one maximum to update however many scopes are open, beginning costs the same however many
// there are, and ending costs a step for every one that began later and is still open.
//
// Who may touch what: a thread's list is its own. The device's list is under a lock that only begin
// and end take, for some hundred nanoseconds, never on an allocation's path; it is in memory that a
// fork empties, and who waits for it gives up after about a second.
#pragma once

#include <stdint.h>

#include "gpumemprof/gpumemprof.h"
#include "probe/counters.h"

namespace gpumemprof::probe {

uint64_t begin_scope(Device device, const void* context);
void switch_scope_out(uint64_t id);
void switch_scope_in(uint64_t id);
int end_scope(uint64_t id, gpumemprof_scope_result* out);

/// attach.cc allocates a block of kTestBytes, which is noticed and not counted, nor is its free.
enum Test : uint32_t { kNoTest, kTestAwaited, kTestMade, kTestOver };
inline constexpr uint64_t kTestBytes = 127;

/// Of the calling thread; plain data, so it outlives every destructor.
struct ThreadScopes {
  uint32_t running;         // the top of its list
  uint32_t holder;          // for `running` in `holder_context`; 0: none of them counts there
  uint32_t is_holder_good;  // else the holder must be made again
  uint32_t with_context;    // how many of `running` have a context
  uint64_t holder_context;
  uint32_t incarnation, tid;
  uint32_t busy;      // the list is being changed: a signal handler's allocation must not look
  uint32_t length;    // of the list, with what other threads have closed
  uint32_t sweep_at;  // the length at which the closed ones are looked for
  uint32_t test;      // Test, of attach.cc
  uint64_t test_address;
};
extern thread_local ThreadScopes t_scopes __attribute__((tls_model("initial-exec")));

/// Whether it is the block of a test, which is no event of the program's. After it was counted.
inline bool is_test_block(uint64_t address) {
  return __builtin_expect(t_scopes.test != kNoTest, 0) && address == t_scopes.test_address;
}

/// The holder for a block that the calling thread has just allocated, with a reference for the
/// block. `*is_complete` becomes false if it cannot be found or created.
uint32_t hold_running(uint32_t device, bool* is_complete);
inline uint32_t hold_block(uint32_t device, bool* is_complete) {
  return __builtin_expect(t_scopes.running == 0, 1) ? 0 : hold_running(device, is_complete);
}

/// Releases a reference.
void drop_holder(uint32_t holder);

/// Counts the block's allocation, or its free with its reference, for all scopes of its holder.
void count_own_alloc(const Block& block);
void release_block(const Block& block);

}  // namespace gpumemprof::probe
