// One thread's turn at recording: its stage, and what it has told the file so far.
//
//   hook ── record() ──> stack id (cache hit: a hash and a probe)  ──> 24 bytes into the stage,
//   publish
//                          └─ miss: define_stack(): strings, frames, the stack, into the
//                          definitions half
//
// No lock, no allocation, no system call on that path; every 5,458th event the half is written out
// (pwrite, over a place that is sealed already). All tables are caches of fixed size:
// what falls out is defined again under another id, so nothing grows and nothing can fail. A thread
// costs 160 KiB of the file and 820 KiB of private memory, touched as it is needed; both are taken
// over by a later thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {

struct CachedStack {
  uint64_t hash;
  uint64_t id;
};
struct CachedFrame {
  uint64_t instruction;
  uint64_t code;  // the same instruction address may come to lie in another code object that begins
                  // elsewhere
  uint32_t generation;
  uint32_t id;
};
struct CachedCode {
  uint64_t code;
  uint32_t generation;
  uint32_t file, function;  // string ids
  uint32_t pad;
};
struct CachedString {
  uint64_t hash;
  uint64_t id;
};

inline constexpr uint32_t kStackSlots = 32768, kFrameSlots = 8192, kCodeSlots = 2048,
                          kStringSlots = 2048, kModuleSlots = 256, kPlacements = 64;

/// Where a caching allocator takes a block from.
struct Placement {
  int64_t stream;   // cudaStream_t
  int64_t pool[2];  // of CUDA graphs and MemPools; zeros: everybody's
  bool operator==(const Placement&) const = default;
};

/// The private tables of a stream; mapped once per stage, emptied when a new thread takes it over.
struct Caches {
  WalkedFrames walked;
  CachedStack stacks[kStackSlots];
  CachedFrame frames[kFrameSlots];
  CachedCode codes[kCodeSlots];
  CachedString strings[kStringSlots];
  uintptr_t modules[kModuleSlots][2];
  uint32_t module_count;
  uint32_t
      last_stack[format::kMaxFrames + 1];  // frame ids from the root, of the stack defined last
  uint32_t last_stack_depth, last_stack_id;
  uint32_t next_string, next_frame, next_stack;
  Placement placements[kPlacements];  // what is at i was defined last under place_ids[i]
  uint32_t place_ids[kPlacements], next_place;
  uint16_t devices[format::kDeviceClasses];  // type << 8 | index, or 0x8000 | a Memory's id; by
                                             // class, from class 2 on
  uint32_t device_count;
};

struct Stream {
  // Of the stage, so that an event need not read it.
  format::RawEvent* events;
  format::StageControl* control;
  bool mirrored;

  uint8_t salt;    // of the current turn of the events half
  uint32_t count;  // records in the events half
  int64_t step;    // that the events half was told last
  Caches* caches;
  Stage* stage;
  uint32_t refused;  // events since the file refused; tried again now and then
  uint32_t refusal;  // the LossKind of that
};

struct Device {  // the ABI twin of c10::Device: two bytes in one register
  int8_t type;
  int8_t index;
};

inline constexpr uint8_t kHostLayer = 0;  // Layer::kHost

/// The memory of an allocator: a device with its own name, where two would otherwise be one. Never
/// changed once an event was recorded in it.
struct Memory {
  uint16_t id;  // differs between all of a process's, below 0x8000
  Device device;
  uint8_t layer;  // Layer of the event's address: who owns the bytes
  bool size_is_requested;
  char name[59];  // ends with a zero
};

/// The step of an event without one, or with an unknown one.
inline constexpr int64_t kNoStep = INT64_MIN;

/// A framework's name for the current work. Becomes the innermost frame of the stack, with `place`
/// as its file ("<tensorflow>") and no line: a name costs nothing after its first event. The step
/// is written for allocations, if it differs from the thread's last one.
struct Label {
  const char* place = nullptr;
  const char* text = nullptr;
  uint32_t length = 0;  // at most kMaxString; 0: no label
  int64_t step = kNoStep;
  bool is_code_alone = false;  // the stack has nothing of Surroundings, and loads no package
};

/// What a caching allocator itself reports of an event, in addition.
struct AllocatorSays {
  uint64_t requested;  // bytes that were asked for; 0: not an allocation
  Placement place;
  bool is_delayed;  // a free that waits for streams
  bool has_device_free;
  uint64_t device_free;  // bytes
};
/// The name of the calling thread's current work (gpumemprof_set_layer). A frame of the file
/// "<layer>", between a label and the frames of code.
void set_layer(const char* name);

/// Records one event of the calling thread. `totals` is null or {allocated, reserved}. Never fails;
/// what cannot be recorded is counted.
void record(format::RawAction action, uint64_t address, uint64_t size, uint32_t device_class,
            const uint64_t* totals = nullptr);

/// The same for a device that has no class yet.
void record_device(format::RawAction action, uint64_t address, uint64_t size, Device device,
                   uint64_t allocated, uint64_t reserved, const AllocatorSays* says = nullptr);

/// A segment that was allocated or freed: one of the first four RawDetails; `size` in multiples of
/// 512 bytes.
void record_segment(format::RawDetail what, uint64_t address, uint64_t size, Device device,
                    const Placement& place);

/// The second half of a free, without totals.
void record_completed(uint64_t address, Device device);

/// Called before the first event of each thread; may record. Null: nothing to say.
using FirstEventCall = void (*)();
extern FirstEventCall g_at_first_event;

/// Writes the facts of a caching allocator: body of a kDefAllocator. Begins the recording if
/// needed. False on failure.
bool tell_allocator(const void* body, size_t length);

/// The same in a named memory. The label's text counts if stacks are taken, so not for frees.
/// `requested`: the requested size if `size` is larger, else 0.
void record_in(format::RawAction action, uint64_t address, uint64_t size, const Memory& memory,
               const Label& label, uint64_t requested = 0);

inline constexpr size_t kMostMarkText = 1000;  // bytes; the C API cuts there

/// Writes a mark into the calling thread's stream, between its events: kind, address and value as
/// in format.h, and a text of `length` bytes or null. False if it could not be written, which is
/// counted. Begins the recording if needed.
bool record_mark(format::RawMarkKind kind, uint64_t address, uint64_t value, const char* text,
                 size_t length);

/// The length of a caller's text, cut between two characters at `most` bytes at most.
size_t length_of_text(const char* text, size_t most);

/// Never 0. `seed` distinguishes names of different kinds.
uint64_t hash_text(const char* text, size_t length, uint64_t seed);

/// The id of a text in the stream, defined at first use; 0 if the file refused. At most kMaxString
/// bytes.
uint32_t define_string(Stream* stream, const char* text, size_t length);

/// The id of the calling thread's stack now, with `label` (or null) as its innermost frame; 0 if
/// there is nothing. A stack that cannot be had is counted; not that of a free at the interpreter's
/// exit, of which every ordinary end has some.
uint32_t current_stack(Stream* stream, const Label* label, bool is_free);

/// Appends a definition: type, then `length` bytes. False if the file refused and the half is full.
bool define(Stream* stream, format::DefinitionType type, const void* body, size_t length);

}  // namespace gpumemprof::probe
