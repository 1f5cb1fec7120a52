// The process's side of a recording: its file, the places in it, the buffers and who owns them, the
// losses.
//
// Life of a process:   kUnset --first event--> kOpening --> kRecording <--> kPaused
//                         ^                        \--> kOff (no folder: for good)
//                         ^                        \--> kUnrecordable (no file: for good; counts)
//                         └── a forked child finds itself here: the word lives in a page that the
//                             kernel empties at fork (MADV_WIPEONFORK), however the fork was made
//   any --strict seccomp--> kFrozen: not even the clock may be read (it faults there); events are
//   counted as lost
//
// Between two calls nothing of ours is open: a program may close every descriptor it finds.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

namespace gpumemprof::probe {

enum State : uint32_t {
  kUnset = 0,
  kRecording = 1,
  kOff = 2,
  kPaused = 3,
  kOpening = 4,
  kFrozen = 5,
  kUnrecordable = 6
};

struct Caches;  // stream.h

/// What `run` requested, read from the environment when the library is loaded.
struct Config {
  uint32_t stacks = format::kStacksPython;
  bool free_stacks = false;
  bool no_cpu = false;
  bool no_attribution = false;  // stacks and what the program says itself; nothing of Surroundings
  bool marks_collectives = false;
  uint64_t max_disk_bytes = 0;
  uint32_t rank_plus_one = 0;
  format::JobPlace job{};  // without time namespace and CRC

  bool wants_attribution() const { return stacks != format::kStacksNone && !no_attribution; }
};
extern Config g_config;
extern char g_folder[3072];  // where to; empty: do nothing

/// Where no launcher numbered the process: the rank and size of its first process group.
void tell_own_rank(uint32_t rank, uint32_t size);

/// Points to two words: a State, and the incarnation, a number unique to this recording. Never
/// null. Read for every event: a thread whose stream has another incarnation carries its parent
/// process's state.
extern volatile uint32_t* g_state;
inline volatile uint32_t* state_page() { return __atomic_load_n(&g_state, __ATOMIC_RELAXED); }
inline uint32_t state() { return __atomic_load_n(state_page(), __ATOMIC_RELAXED); }
inline uint32_t incarnation() { return __atomic_load_n(state_page() + 1, __ATOMIC_RELAXED); }

/// One thread's buffer. `owner` is the tid that writes it, or 0.
struct Stage {
  uint8_t* base;    // kStageBytes: of the arena, the file's own pages, or private where `mirrored`
  uint64_t offset;  // in the file
  bool mirrored;    // nothing that may be mapped: every change is also written with pwrite
  bool in_arena;    // a page before it is its ArenaPlace
  uint32_t owner;
  Caches* caches;  // private tables of the stream that has it; null until first used

  format::StageControl* control() const {
    return reinterpret_cast<format::StageControl*>(base + sizeof(format::ChunkHeader));
  }
  format::RawEvent* events() const {
    return reinterpret_cast<format::RawEvent*>(base + format::kStageEventsOffset);
  }
  uint8_t* definitions() const { return base + format::kStageDefinitionsOffset; }
};

/// Makes this process record: creates the file and the memory for its first page. Called at the
/// first event and in a forked child. True if the process records now. Any thread; one does the
/// work, others wait briefly.
bool begin_recording();

/// A stage for the calling thread: one whose owner died (according to tgkill), otherwise a new one.
/// Null if the file system or the address space refuses; `why` has the reason. Its halves are empty
/// and its stream number is new.
Stage* claim_stage(uint32_t tid, format::LossKind* why);

/// Writes a chunk of the file: header, then `payload`. 0 or a LossKind + 1.
uint32_t write_chunk(format::ChunkHeader header, const void* payload);

/// Writes out a stage's half and empties it. False if the file refused: the half does not change.
bool flush_events(Stage* stage, format::LossKind* why);
bool flush_definitions(Stage* stage, format::LossKind* why);

/// For a mirrored stage, writes bytes [from, from + size) to the file.
void mirror(const Stage* stage, const void* from, size_t size);

void count_loss(format::LossKind kind, uint64_t events = 1);
/// A request for memory was refused: counted beside its event, for observers of the file.
void count_refusal();
/// The mutable part of the file's first page; null before the recording began.
format::FileState* file_state();
/// Records of all streams so far.
uint64_t event_count();

/// True once the program has restricted its own system calls: from then on the probe makes none.
extern bool g_sandboxed;
/// The same, and the clock is forbidden too (SECCOMP_MODE_STRICT disables rdtsc).
void freeze();

}  // namespace gpumemprof::probe
