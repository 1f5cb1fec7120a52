// The calling thread's Python frames, read without the GIL and without Python.h.
//
// Why this is sound: only the thread itself changes its chain of frames, and it is inside a C call
// of ours; every frame on the chain holds a reference to its code object, so code, names and line
// tables are alive and do not change. 1.3 to 1.8 ns a frame; taking the GIL here could deadlock
// PyTorch, whose allocators run with their own lock held.
//
// Known: CPython 3.11 to 3.14 with a GIL. Any other interpreter: no stacks, and the summary says
// so.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probe/watched_code.h"

namespace gpumemprof::probe {

/// The positions of fields in this interpreter's structures: byte offsets.
struct PythonLayout {
  uint32_t tstate_frame;  // in PyThreadState: the frame, or the _PyCFrame (3.11, 3.12)
  uint32_t cframe_frame;  // in _PyCFrame
  bool through_cframe;
  uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_locals;
  uint32_t skip_owner;  // frames with owner >= this belong to the interpreter itself
  uint32_t code_first_line, code_filename, code_qualname, code_line_table, code_bytes;
  uint32_t str_length, str_state, str_ascii_data, str_compact_data;
  uint32_t bytes_size, bytes_data;
};

/// The layout of a version, for `debug_offsets` = _PyRuntime if the interpreter describes itself
/// (from 3.13 on; null before). False: unknown.
bool python_layout(uint32_t major, uint32_t minor, const uint64_t* debug_offsets,
                   PythonLayout* out);

/// The fields that an event reads are in the first 64 bytes: one cache line.
struct alignas(64) Python {
  bool ready = false;
  void* (*this_thread_state)() =
      nullptr;  // PyGILState_GetThisThreadState: null for a foreign thread
  int (*is_finalizing)() = nullptr;
  PythonLayout layout{};
  const void* cell_type = nullptr;  // PyCell_Type
};
static_assert(offsetof(Python, layout) + offsetof(PythonLayout, code_first_line) <= 64);
extern Python g_python;

/// Looks for an interpreter in this process; sets g_python and the state in the file. May be
/// repeated.
void prepare_python();

template <class T>
inline T load(const void* base, uint32_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(base) + offset, sizeof(value));
  return value;
}

/// The innermost frame, or null: no interpreter, not a Python thread, nothing running. `*unsafe` is
/// set if the interpreter is shutting down and frames of other threads may be freed concurrently.
inline const char* top_frame(bool* unsafe) {
  const Python& py = g_python;
  if (!py.ready) return nullptr;
  const void* tstate = py.this_thread_state();
  if (!tstate) return nullptr;
  if (py.is_finalizing && py.is_finalizing()) return *unsafe = true, nullptr;
  const char* frame = load<const char*>(tstate, py.layout.tstate_frame);
  if (py.layout.through_cframe && frame) frame = load<const char*>(frame, py.layout.cframe_frame);
  return frame;
}

inline constexpr uint32_t kMaxWalk = 1 << 16;  // deeper than any recursion limit in use

/// The innermost frames of a thread's last walk. In a real step the tensor operations evict the
/// frames from the first-level cache between two events, and walking them is a chain of dependent
/// loads. Most are where they were, so prefetching all of them while the clock is read hides most
/// of that. Only ever prefetched, never read: they may be gone.
inline constexpr uint32_t kMostPrefetched = 31;
struct WalkedFrames {
  uint32_t count;
  const char* frames[kMostPrefetched];
};

inline void prefetch_frames(const WalkedFrames& walked) {
  const uint32_t offset = g_python.layout.frame_instruction;
  for (uint32_t i = 0; i < walked.count; ++i) __builtin_prefetch(walked.frames[i] + offset);
}

/// The frame of the innermost watched call among the first `most`; null if there is none, or, with
/// `is_in_work`, none inside the innermost entry; `*hit_entry` says whether that is the reason.
inline const char* find_call(const char* frame, uint32_t most, bool is_in_work, bool* hit_entry) {
  const WatchedCodes& watched = *watched_codes();
  const uint32_t previous = g_python.layout.frame_previous;
  const uint32_t instruction = g_python.layout.frame_instruction;
  for (uint32_t n = 0; frame && n < most; ++n) {
    const uint64_t at = load<uint64_t>(frame, instruction);
    if (watched.call.contains(at)) return frame;
    for (const CodeRange& entry : watched.entries) {
      if (is_in_work && entry.contains(at)) return *hit_entry = true, nullptr;
    }
    frame = load<const char*>(frame, previous);
  }
  return nullptr;
}

/// A hash of the whole chain, and the frame of the innermost watched call in it, or null. An
/// instruction's address is inside its code object, so it alone identifies (code, instruction);
/// reuse of a code object's address is handled by `epoch` (code_identity.h).
inline uint64_t hash_frames(const char* frame, uint64_t epoch, WalkedFrames* walked,
                            const CodeRange watched, const char** call) {
  const uint32_t previous = g_python.layout.frame_previous;
  const uint32_t instruction = g_python.layout.frame_instruction;
  uint64_t hash = epoch * 0xd6e8feb86659fd93u + 1;
  uint32_t n = 0;
  // Separate loops, so that a frame costs only what its position needs: frames to prefetch next
  // time are noted, those inside the call compared.
  for (; frame && n < kMostPrefetched; ++n) {
    walked->frames[n] = frame;
    const uint64_t at = load<uint64_t>(frame, instruction);
    hash = (hash ^ at) * 0x9e3779b97f4a7c15u;
    if (__builtin_expect(watched.contains(at), 0)) {
      *call = frame;
      break;
    }
    frame = load<const char*>(frame, previous);
  }
  if (*call) {  // its own frame is done
    frame = load<const char*>(frame, previous);
    for (++n; frame && n < kMostPrefetched; ++n) {
      walked->frames[n] = frame;
      hash = (hash ^ load<uint64_t>(frame, instruction)) * 0x9e3779b97f4a7c15u;
      frame = load<const char*>(frame, previous);
    }
  }
  walked->count = n < kMostPrefetched ? n : kMostPrefetched;
  for (; frame && n < kMaxWalk; ++n) {
    const uint64_t at = load<uint64_t>(frame, instruction);
    hash = (hash ^ at) * 0x9e3779b97f4a7c15u;
    if (!*call && watched.contains(at)) *call = frame;
    frame = load<const char*>(frame, previous);
  }
  return hash ^ hash >> 32;
}

}  // namespace gpumemprof::probe
