// The code addresses of a few Python functions (View::functions), so that the walk over a thread's
// frames can recognize them by the instruction's address alone. Found by name when a stack is
// written for the first time; no lock, no lookup in the interpreter.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

struct CodeRange {
  uint64_t begin = 0, size = 0;  // of its instructions
  bool contains(uint64_t instruction) const { return instruction - begin < size; }
};

inline constexpr uint32_t kMostEntries = 3;

/// Never changed once published: a walking thread sees all of an old or a new one.
struct WatchedCodes {
  CodeRange call;  // whose first argument is the receiver
  CodeRange entries[kMostEntries];
  uint64_t call_code, entry_codes[kMostEntries];  // the code objects
};
extern const WatchedCodes* g_watched;  // never null
inline const WatchedCodes* watched_codes() { return __atomic_load_n(&g_watched, __ATOMIC_ACQUIRE); }

/// Whether the frame's code is one of the watched functions; then it is known from now on.
/// Otherwise a few loads.
void consider_frame(const char* frame);

/// The code object dies (called before its memory is reused).
void forget_watched(const void* code);

/// The first argument of a call and its class, from the frame; null if there is none.
const void* receiver_of(const char* frame, const void** type);

}  // namespace gpumemprof::probe
