// Whether what TensorFlow's functions tell us fits together. A release of which some names are
// bound to us and others are not would be recorded wrongly: allocations without their frees, or the
// reverse. Seen from the first blocks themselves, since nothing may be asked of an allocator that
// the program has not asked.
//
//   a table is used when its pool is first seen   its functions stand where they must: before
//                                                      any is called by its place
//   a block is freed before its address comes again    proves that frees arrive; kProof of them,
//                                                      and the test is over
//   an address comes again and was not freed           kContradictions of them: frees do not arrive
//   frees, and no allocation at all                    allocations do not; not after attaching or
//                                                      a time in which nobody wanted to know:
//                                                      they may be of older blocks
//
// Then nothing of TensorFlow is recorded or counted any more, and each event from there on is
// counted as lost, with the reason (format.h).
#pragma once

#include <stdint.h>

#include "format/format.h"

namespace gpumemprof::probe::tensorflow {

/// Allocators with separate functions.
enum Kind : uint32_t { kOfBfc, kOfAsync, kOfAligned, kKinds };

inline constexpr uint32_t kProof = 64, kContradictions = 8, kFreesAlone = 64;

extern uint32_t g_proof[kKinds];  // blocks that were freed as they must be
extern uint32_t g_unfit;          // 0, or LossKind + 1: recording is off

inline bool is_fit() { return __builtin_expect(!__atomic_load_n(&g_unfit, __ATOMIC_RELAXED), 1); }
inline bool is_on_trial(Kind kind) {
  return __builtin_expect(__atomic_load_n(&g_proof[kind], __ATOMIC_RELAXED) < kProof, 0);
}

void try_alloc(Kind kind, const void* p);
void try_free(Kind kind, const void* p);
inline void saw_alloc(Kind kind, const void* p) {
  if (is_on_trial(kind)) try_alloc(kind, p);
}
inline void saw_free(Kind kind, const void* p) {
  if (is_on_trial(kind)) try_free(kind, p);
}
/// Recording was off for a while: frees in that time were not seen.
void forget_trial();

/// Ends the recording of TensorFlow, and writes the reason into the process's file, which is
/// created if needed.
void give_up(format::LossKind why);

}  // namespace gpumemprof::probe::tensorflow
