// The calling thread's Python frames, read without the GIL and without Python.h.
//
// Why this is sound: only the thread itself changes its chain of frames, and it is inside a C call
// of ours; every frame on the chain holds a reference to its code object, so code, names and line
// tables are alive and do not change. 1.3 to 1.8 ns a frame; taking the GIL here could deadlock
// PyTorch, whose allocators run with their own lock held.
//
// Known: CPython 3.9 to 3.14, and 3.13 and 3.14 without a GIL: there, too, only the thread itself
// changes its chain, and a code object that a frame refers to is not freed. Any other interpreter:
// no stacks, and the summary says so.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probe/watched_code.h"

namespace gpumemprof::probe {

/// How a code object keeps the lines of its instructions.
enum class LineTable : uint32_t {
  kLocations,  // 3.11 on: Objects/locations.md
  kLines,      // 3.10: co_linetable of PEP 626
  kNumbers,    // 3.9: co_lnotab
};

/// How a frame's place is told; see place_of().
enum class PlaceKind : uint8_t {
  kAddress,   // 3.11 on: of the instruction, inside its code object
  kPacked,    // 3.9, 3.10: code object and number of the instruction
  kWithCode,  // free-threaded: of the instruction, which may be in a thread's copy of the code
};

/// The positions of fields in this interpreter's structures: byte offsets.
struct PythonLayout {
  uint32_t tstate_frame;  // in PyThreadState: the frame, or the _PyCFrame (3.11, 3.12)
  uint32_t cframe_frame;  // in _PyCFrame
  bool through_cframe;
  PlaceKind places;
  uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_locals;
  uint32_t skip_owner;  // frames with owner >= this belong to the interpreter itself
  uint32_t code_first_line, code_filename, code_qualname, code_line_table;
  uint32_t code_bytes;  // the instructions, or their bytes object where places are packed
  LineTable lines;
  uint32_t code_local_count, code_cells, code_cell_arguments;  // where places are packed
  uint32_t str_length = 16, str_state = 32, str_ascii_data, str_compact_data;
  uint32_t str_kind_bit = 2;  // of str_state: the first of those of the kind
  uint32_t bytes_size = 16, bytes_data = 32;
  uint32_t object_type = 8, object_size = 16;  // ob_type, and ob_size behind it
  // Free-threaded 3.14: which copy of the code a frame runs, and where the copies are; else 0.
  uint32_t frame_copy, code_copies;

  bool packs_place() const { return places == PlaceKind::kPacked; }
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

/// The code object of a frame; null in 3.14 for some of the interpreter's own.
inline const char* code_of(const char* frame) {
  return reinterpret_cast<const char*>(load<uintptr_t>(frame, g_python.layout.frame_code) &
                                       ~uintptr_t{3});
}

/// Bits of a packed place for the instruction's number. Objects lie at multiples of 16 below 2^47.
inline constexpr uint32_t kPlaceBits = 21;
inline constexpr uint32_t kBeforeFirst = (1 << kPlaceBits) - 1;  // of a frame that has not started
inline constexpr uint32_t kFarPlace = kBeforeFirst - 1;          // which one is not known

/// The first place of a code object, where places are packed.
inline uint64_t packed_places(const char* code) {
  return reinterpret_cast<uintptr_t>(code) >> 4 << kPlaceBits;
}

/// Where a frame is: a number that says code object and instruction. Of 3.11 on the instruction's
/// address, which is inside its code object. Before, instructions are a bytes object that several
/// code objects may share, so it is made of the code object's address and the instruction's number.
/// Without a GIL threads run copies of the code, whose memory may come to be another code's: the
/// address says it with the code object alone (code_key()).
template <PlaceKind kKind>
inline uint64_t place_of(const char* frame, uint32_t instruction) {
  if constexpr (kKind != PlaceKind::kPacked) return load<uint64_t>(frame, instruction);
  uint32_t number = load<uint32_t>(frame, instruction);
  if (number >= kFarPlace) number = number == UINT32_MAX ? kBeforeFirst : kFarPlace;
  return packed_places(code_of(frame)) | number;
}

inline uint64_t place_of(const char* frame) {
  const PythonLayout& layout = g_python.layout;
  return layout.packs_place() ? place_of<PlaceKind::kPacked>(frame, layout.frame_instruction)
                              : place_of<PlaceKind::kAddress>(frame, layout.frame_instruction);
}

/// What a place lacks of its code object: 0 where it says all.
template <PlaceKind kKind>
inline uint64_t code_key(const char* frame) {
  if constexpr (kKind != PlaceKind::kWithCode) return 0;
  return load<uint64_t>(frame, g_python.layout.frame_code) << 17;
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
template <PlaceKind kKind>
inline const char* find_call(const char* frame, uint32_t most, bool is_in_work, bool* hit_entry) {
  const WatchedCodes& watched = *watched_codes();
  const uint32_t previous = g_python.layout.frame_previous;
  const uint32_t instruction = g_python.layout.frame_instruction;
  for (uint32_t n = 0; frame && n < most; ++n) {
    const uint64_t at = place_of<kKind>(frame, instruction);
    if (watched.call.contains(at)) return frame;
    for (const CodeRange& entry : watched.entries) {
      if (is_in_work && entry.contains(at)) return *hit_entry = true, nullptr;
    }
    frame = load<const char*>(frame, previous);
  }
  return nullptr;
}

inline const char* find_call(const char* frame, uint32_t most, bool is_in_work, bool* hit_entry) {
  return g_python.layout.packs_place()
             ? find_call<PlaceKind::kPacked>(frame, most, is_in_work, hit_entry)
             : find_call<PlaceKind::kAddress>(frame, most, is_in_work, hit_entry);
}

/// A hash of the whole chain, and the frame of the innermost watched call in it, or null. A place
/// alone identifies (code, instruction); reuse of a code object's address is handled by `epoch`
/// (code_identity.h).
template <PlaceKind kKind>
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
    const uint64_t at = place_of<kKind>(frame, instruction);
    hash = (hash ^ at ^ code_key<kKind>(frame)) * 0x9e3779b97f4a7c15u;
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
      hash = (hash ^ place_of<kKind>(frame, instruction) ^ code_key<kKind>(frame)) *
             0x9e3779b97f4a7c15u;
      frame = load<const char*>(frame, previous);
    }
  }
  walked->count = n < kMostPrefetched ? n : kMostPrefetched;
  for (; frame && n < kMaxWalk; ++n) {
    const uint64_t at = place_of<kKind>(frame, instruction);
    hash = (hash ^ at ^ code_key<kKind>(frame)) * 0x9e3779b97f4a7c15u;
    if (!*call && watched.contains(at)) *call = frame;
    frame = load<const char*>(frame, previous);
  }
  return hash ^ hash >> 32;
}

inline uint64_t hash_frames(const char* frame, uint64_t epoch, WalkedFrames* walked,
                            const CodeRange watched, const char** call) {
  switch (g_python.layout.places) {
    case PlaceKind::kPacked:
      return hash_frames<PlaceKind::kPacked>(frame, epoch, walked, watched, call);
    case PlaceKind::kWithCode:
      return hash_frames<PlaceKind::kWithCode>(frame, epoch, walked, watched, call);
    case PlaceKind::kAddress:
      break;
  }
  return hash_frames<PlaceKind::kAddress>(frame, epoch, walked, watched, call);
}

}  // namespace gpumemprof::probe
