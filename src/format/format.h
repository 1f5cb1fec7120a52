// The bytes of a .gmp file: what writer and reader share. Prose and pictures:
// docs/recording-format.md. Little-endian, 64-bit. C library only: this is compiled into other
// people's processes.
#pragma once

#include <stdint.h>

namespace gpumemprof::format {

inline constexpr uint8_t kFileMagic[8] = {0x89, 'G', 'M', 'P', '\r', '\n', 0x1a, '\n'};
inline constexpr uint16_t kMajor = 1;    // a reader refuses a newer major
inline constexpr uint16_t kMinor = 1;    // a newer minor only adds ignorable things
inline constexpr uint32_t kPage = 4096;  // everything in the file starts at a multiple of this
inline constexpr uint32_t kChunkMagic = 0x4b434d47;  // "GMCK"
inline constexpr uint32_t kMaxChunkBytes = 64u << 20;

/// Bit 15 set: a reader that does not know the type skips the chunk by its length.
inline constexpr uint16_t kIgnorable = 0x8000;

enum ChunkType : uint16_t {
  kZero = 0,            // never written: preallocated, or a hole where a sealed chunk's source was
  kRawEvents = 1,       // RawEvent records of one stream
  kRawDefinitions = 2,  // definition records of one stream
  kStage = 3,           // a thread's buffer: StageControl, events, definitions (see below)
  kSealedEvents = 4,
  kSealedDefinitions = 5,
  kCheckpoint = 6,          // live set, totals per stack, peak so far
  kFooter = 7,              // the file is complete: header fields and losses once more, under a CRC
  kMarks = 8 | kIgnorable,  // kRawMark records of the kSealedEvents chunk after it
  kStorageFacts = 9 | kIgnorable,        // not used: a role is a mark
  kDeviceSamples = 10 | kIgnorable,      // what the system and its drivers said; in *.gms alone
  kSealedDeviceNames = 11 | kIgnorable,  // names of devices that kSealedDefinitions defines later
  kSealedRequested = 12 | kIgnorable,    // requested sizes of the kSealedEvents chunk after it
  kSealedAllocators = 13 | kIgnorable,   // what is known of the allocators that were followed
  kSealedDetails = 14 | kIgnorable,      // their details of the kSealedEvents chunk after it
  kSealedSteps = 15 | kIgnorable         // steps of the kSealedEvents chunk after it
};

/// 64 bytes before every chunk. The CRC covers the header (with crc32c = 0) and the payload; of a
/// kStage chunk the header alone, since its payload changes.
struct ChunkHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t flags;
  uint32_t length;  // of the payload
  uint32_t crc32c;
  uint64_t recording_id;  // so that another file's bytes are never taken for ours
  uint64_t sequence;      // counts up within a stream (raw) or within the file (sealed)
  uint64_t time_first_ns, time_last_ns;
  uint32_t stream;         // which thread's turn with a buffer; 0 for sealed chunks
  uint32_t count;          // records in a kRawEvents, events in a kSealedEvents chunk
  uint64_t first_ordinal;  // number of the first record within the stream, or of the first event in
                           // the file
};
static_assert(sizeof(ChunkHeader) == 64);

/// Why an event or a stack is not there. Counted in the file header, shown in every report.
enum LossKind : uint32_t {
  kLostNoSpace = 0,    // the disk, a quota or RLIMIT_FSIZE refused
  kLostNoBuffer = 1,   // no buffer for a thread: mmap or the limit of threads
  kLostReentered = 2,  // an event inside the recording of another (a signal handler)
  kLostSandboxed = 3,  // seccomp: no system call may be made any more and the buffer was full
  kLostMaxDisk = 4,    // --max-disk reached and nobody seals
  kLostStack = 5,      // the event is there, its stack is not (interpreter shutting down)
  kLostIo = 6,         // any other refusal of the file system
  kLostWide = 7,       // a value that the format cannot hold
  kLostDriver = 8,     // a call of a device's driver whose memory could not be told
  kLostPhase = 9,      // the events are there, a phase that they were in is not: too many were open
  // A framework's functions do not fit together, so that what they tell would be wrong:
  kLostNoAllocs = 13,  // frees come to us, allocations do not
  kLostNoFrees = 14,   // the reverse
  kLostUnknown = 15,   // its classes are of an unknown shape
  kLossKinds = 16
};
/// Else every event is there, with less said of it.
constexpr bool loses_events(uint32_t kind) { return kind != kLostStack && kind != kLostPhase; }

enum StackMode : uint32_t {
  kStacksNone = 0,
  kStacksPython = 1,
  kStacksNative = 2,
  kStacksBoth = 3
};

/// How far the Python side got; said in the summary where it is not kPythonOk.
enum PythonState : uint32_t {
  kPythonAbsent = 0,
  kPythonOk = 1,
  kPythonUnknownVersion = 2,
  kPythonNotAsked = 3
};
enum NativeState : uint32_t { kNativeNotAsked = 0, kNativeOk = 1, kNativeNoLibunwind = 2 };

/// The first page. The first part is written once and has a CRC; the second changes while
/// recording.
struct FileHeader {
  uint8_t magic[8];
  uint16_t major, minor;
  uint32_t header_bytes;  // kPage
  uint64_t recording_id;
  uint32_t pid, parent_pid;
  uint64_t start_ticks;
  uint64_t monotonic_ns, realtime_ns;  // one moment on both clocks
  uint32_t stack_mode;
  uint32_t free_stacks;
  char host[64];
  char boot_id[40];
  char command[1024];  // argv with spaces
  uint32_t crc32c;     // of all above
  uint32_t rank_plus_one;  // as the launcher numbers the process, + 1; 0 where it did not
};
static_assert(sizeof(FileHeader) <= 2048);
inline constexpr uint32_t kStateOffset = 2048;

/// From minor 1 on, in the first page of a finished file: where it ends and how much is in it, so
/// that a file that was cut later says so itself. Zeros while it grows.
struct FinishedFile {
  uint64_t bytes;   // size of the file
  uint64_t events;  // of the footer
  uint32_t crc32c;  // of the recording id and the two
  uint32_t pad;
};
inline constexpr uint32_t kFinishedOffset = 1216;
static_assert(sizeof(FileHeader) <= kFinishedOffset);
static_assert(kFinishedOffset + sizeof(FinishedFile) <= kStateOffset);

/// Who started the process as one of several. The numbers are stored: never renumber.
enum JobLauncher : uint32_t {
  kNoLauncher = 0,
  kTorchrun = 1,  // and whatever sets RANK and WORLD_SIZE
  kOpenMpi = 2,
  kPmi = 3,  // MPICH, Intel MPI
  kSlurm = 4,
  kOwnGroup = 5,  // nobody: the program's first process group numbers it, as where it spawns ranks
};
inline constexpr uint32_t kLastLauncher = kOwnGroup;

/// At kJobOffset of the first page: what the launcher told the process in its environment, else
/// what its first process group is. Zeros, and so no valid CRC, in files from before it existed.
struct JobPlace {
  uint32_t launcher;
  uint32_t world_size, local_world_size;  // 0: not told
  uint32_t local_rank_plus_one, node_plus_one;
  uint32_t restarts;        // how often the launcher had started the job before
  uint64_t time_namespace;  // inode of /proc/self/ns/time: which monotonic clock; 0 unknown
  char job[64];             // the launcher's name of the job; may be empty
  uint32_t crc32c;          // of the recording id and all above
  uint32_t pad;
};
inline constexpr uint32_t kJobOffset = kFinishedOffset + sizeof(FinishedFile);
static_assert(kJobOffset % 8 == 0 && kJobOffset + sizeof(JobPlace) <= kStateOffset);

/// At kStateOffset of the first page; every field is stored and added to atomically.
struct FileState {
  uint64_t
      next_offset;  // where the next chunk goes: fetch_add claims a place (probe and sealer alike)
  uint64_t next_stream;
  uint64_t clean_exit;       // 1 when exit() or _exit() ran
  uint64_t reclaimed_bytes;  // given back by the sealer
  uint64_t python_state, native_state;
  uint64_t python_version;  // major << 16 | minor << 8 | micro
  uint64_t sandboxed;
  uint64_t lost[kLossKinds];
  uint64_t first_lost_ns, last_lost_ns;
  uint64_t pid_namespace;  // inode of /proc/self/ns/pid: what `pid` means; 0 unknown
  uint64_t unshared;  // 1: mmap was refused, so this page is the process's own copy; nobody else
                      // may claim places
};
static_assert(sizeof(FileState) <= 512);

/// A full half with its header, exactly: 32 pages.
inline constexpr uint32_t kEventsPlaceBytes = 128 * 1024;

/// At kPoolOffset of the first page: places whose events are in sealed chunks by now, for the
/// program to write over. Writing over pages that are there costs a fraction of appending
/// them. The sealer alone turns 0 into an offset, the program alone an offset into 0, both
/// atomically; what lies at the offset begins with 64 zeros ("never written") before it is here.
struct PlacePool {
  uint64_t raw_bytes;  // of event chunks written so far, in new places and in used ones
  uint64_t offsets[128];
};
inline constexpr uint32_t kPoolOffset = kStateOffset + 512;

/// Here in the first page is a u64, added to atomically: requests for memory that were refused
/// (kRawOom), so that who samples the device sees one at once. 0 also where a writer does not count
/// them. Not in FileState, a copy of which every footer holds.
inline constexpr uint32_t kRefusalsOffset = 3840;
static_assert(kPoolOffset + sizeof(PlacePool) <= kRefusalsOffset && kRefusalsOffset < kPage);

/// After it in the first page, from minor 1 on; both are added to atomically. So a reader knows how
/// much of a file is not there any more.
struct FileCounts {
  uint64_t written_events;  // in the kRawEvents chunks written so far
  uint64_t stages;          // that were made
};
inline constexpr uint32_t kCountsOffset = kRefusalsOffset + 8;
static_assert(kCountsOffset + sizeof(FileCounts) <= kPage);

// A stage: one thread's buffer, a piece of the file mapped shared, so that what is published
// survives the death of the process. A full half is written out as a chunk of its own and begins
// again.
//
//   +0     ChunkHeader (kStage)      +64  StageControl
//   +4096  events, as many records of 24 bytes as a place takes with its header
//   the last 28 KiB: definitions
//
// A reader takes the size of the events half from the chunk's length; writers agree on kStageBytes.
inline constexpr uint32_t kStageEventsOffset = kPage;
inline constexpr uint32_t kStageEvents = (kEventsPlaceBytes - sizeof(ChunkHeader)) / 24;  // 5,458
inline constexpr uint32_t kStageDefinitionBytes = 28672;
inline constexpr uint32_t kStageBytes = kPage + kEventsPlaceBytes + kStageDefinitionBytes;
inline constexpr uint32_t kStageDefinitionsOffset = kStageBytes - kStageDefinitionBytes;
inline constexpr uint32_t kMaxStageBytes = 4u << 20;
static_assert(kStageBytes == 160 * 1024);

/// `published` words hold sequence << 32 | amount and are the only thing that publishes: what they
/// do not cover does not exist. Bumping the sequence empties the half; a reader that finds a raw
/// chunk of the same (stream, sequence) takes the chunk and ignores the half.
struct StageControl {
  uint64_t events_published;       // sequence << 32 | records
  uint64_t definitions_published;  // sequence << 32 | bytes
  uint64_t
      first_ordinal[2];  // of the half's first record, indexed by the lowest bit of the sequence
  uint32_t stream;       // changes only while both halves are empty
  uint32_t tid;
};

/// One event, 24 bytes. The parity byte makes the XOR of all 24 bytes equal to salt(stream,
/// sequence), so a flipped byte or a record of an earlier turn of the buffer is seen although a
/// stage has no CRC.
struct RawEvent {
  uint64_t time_parity;        // time_ns << 8 | parity
  uint64_t address_device;     // address (57 bits) | device class << 57
  uint64_t size_action_stack;  // size (37 bits) | RawAction << 37 | stack << 40
};
static_assert(sizeof(RawEvent) == 24);
inline constexpr uint64_t kAddressMask = (uint64_t{1} << 57) - 1;
inline constexpr uint64_t kSizeMask = (uint64_t{1} << 37) - 1;
inline constexpr uint32_t kMaxStackId = (1u << 24) - 1;
inline constexpr uint32_t kDeviceClasses = 128;

enum RawAction : uint8_t {
  kRawAlloc = 1,
  kRawFreeRequested = 2,
  kRawFreeCompleted = 3,
  kRawOom = 4,
  kRawTotals = 5,  // right after its event: address = allocated, size = reserved / 512, stack =
                   // reserved % 512
  kRawWide = 6,    // before an event: third word's size field = its size >> 37, address = the size
                   // that was asked for, where that is another one and known; else 0; stack = a
                   // RawDetail in the lowest 4 bits, above it a placement (kDefPlacement; 0: the
                   // default stream, no pool of its own)
  kRawMark = 7,    // no event: something said of the program. stack = a RawMarkKind in the lowest
                   // 4 bits, above it the id of a string (20 bits, 0: none)
};

/// What a kRawMark says, and where. Marks have ordinals like all records of a stream, and no
/// device.
enum RawMarkKind : uint8_t {
  kMarkSaved = 1,       // address = where the storage of a tensor begins that autograd saved for
                        // backward; size = SavedFlags
  kMarkRole = 2,        // address = where a storage begins, size = StorageRole, string = its name
  kMarkModule = 3,      // address = a module's object, string = its path in the model
  kMarkStep = 4,        // a step of the program ended; size = its number, counted from 0
  kMarkPhaseBegin = 5,  // string = name, address = a number for its end, unique in the process
  kMarkPhaseEnd = 6,    // address = that number
  kMarkCopied = 7,      // address = where the storage begins that was copied into; where the other
                        // one begins: size, and above it the bits of string
};
inline constexpr RawMarkKind kLastMark = kMarkCopied;
enum SavedFlags : uint8_t {
  kSavedIsOutput = 1,    // the tensor is the result of the operation that saves it
  kSavedHasHistory = 2,  // it has autograd metadata: a leaf that requires grad, or another's result
  kSavedIsConstant = 4,  // it has autograd metadata and requires no grad, as a view of data
};
enum StorageRole : uint8_t {
  kRoleNone = 0,  // what was told of the address before no longer holds
  kRoleParameter = 1,
  kRoleBuffer = 2,
  kRoleGradient = 3,
  kRoleOptimizerState = 4,
};
/// The size of a kMarkRole without an address, which is of the process.
enum ProcessMark : uint8_t {
  kRolesHold = 0,    // all roles were looked at: what was told of an address and not taken back
                     // holds now, for whatever block lies there
  kProgramEnds = 1,  // the program's code has run: the interpreter frees what it had kept
  // From here on bits 0 to 3 of the value alone; see pack_collective().
  kCollectiveBegins = 2,
  kCollectiveEnds = 3,
};

/// The value of a mark at either end of a collective that no rank leaves before all have entered
/// it. `group`: of all ranks, in the order in which the process made them; `number`: the
/// framework's, the same on all ranks.
inline constexpr uint32_t kMostGroups = 16;
inline constexpr uint64_t kMostCollectives = uint64_t{1} << 29;
inline uint64_t pack_collective(ProcessMark what, uint32_t group, uint64_t number) {
  return static_cast<uint64_t>(what) | uint64_t{group} << 4 | number << 8;
}
/// Which ones are recorded, as all ranks must choose the same: the first, then ever 16th.
inline bool is_collective_recorded(uint64_t number) {
  return number < kMostCollectives && (number < 4096 || number % 16 == 0);
}

/// What a kRawWide says of its event. Up to kDetailDeviceFree it is the first half of a *pair*: no
/// event but a kRawTotals follows, which holds what is told. A reader that knows no pairs skips
/// both, since the first has no size and the second comes after no event.
enum RawDetail : uint8_t {
  kNoDetail = 0,
  kDetailSegmentAlloc = 1,  // of the pair: address, size / 512, stack; so with the next three
  kDetailSegmentFree = 2,
  kDetailSegmentMap = 3,
  kDetailSegmentUnmap = 4,
  kDetailDeviceFree =
      5,  // of the pair: address = bytes that the device had free at the next kRawOom
  kDetailDelayedFree = 6,  // not a pair: the kRawFreeRequested after it waits for streams; its
                           // kRawFreeCompleted follows when they are done
  kDetailStep = 7,  // no pair either: pack_step() below. Another kRawWide follows it, by which
                    // readers that know no steps let it be overwritten
};
inline constexpr uint32_t kMaxPlacement = (1u << 20) - 1;

inline uint8_t salt(uint32_t stream, uint32_t sequence) {
  uint32_t x = stream * 2654435761u ^ sequence * 40503u;
  return static_cast<uint8_t>(x >> 8 ^ x >> 16 ^ x);
}
inline uint8_t fold(uint64_t x) {
  x ^= x >> 32, x ^= x >> 16, x ^= x >> 8;
  return static_cast<uint8_t>(x);
}
inline RawEvent pack(uint64_t time_ns, uint64_t address, uint32_t device_class, uint64_t size,
                     RawAction action, uint32_t stack, uint8_t event_salt) {
  RawEvent e{time_ns << 8, (address & kAddressMask) | uint64_t{device_class} << 57,
             (size & kSizeMask) | uint64_t{action} << 37 | uint64_t{stack} << 40};
  e.time_parity |= fold(e.time_parity ^ e.address_device ^ e.size_action_stack) ^ event_salt;
  return e;
}
inline bool is_intact(const RawEvent& e, uint8_t event_salt) {
  return fold(e.time_parity ^ e.address_device ^ e.size_action_stack) == event_salt;
}
inline uint64_t time_of(const RawEvent& e) { return e.time_parity >> 8; }
inline uint64_t address_of(const RawEvent& e) { return e.address_device & kAddressMask; }
inline uint32_t device_class_of(const RawEvent& e) {
  return static_cast<uint32_t>(e.address_device >> 57);
}
inline uint64_t size_of(const RawEvent& e) { return e.size_action_stack & kSizeMask; }
inline RawAction action_of(const RawEvent& e) {
  return static_cast<RawAction>(e.size_action_stack >> 37 & 7);
}
inline uint32_t stack_of(const RawEvent& e) {
  return static_cast<uint32_t>(e.size_action_stack >> 40);
}

/// What a framework calls the step that it allocates for, a number of 64 bits, is told where it
/// changes: a kRawWide with kDetailStep says that from here on the thread allocates for
/// this step, or for none. It is said anew in each half, as the half before may be gone.
inline constexpr uint32_t kStepIsKnown = 128;
inline RawEvent pack_step(uint64_t time_ns, bool is_known, int64_t step, uint8_t event_salt) {
  uint64_t bits = is_known ? static_cast<uint64_t>(step) : 0;
  uint32_t rest = (is_known ? kStepIsKnown : 0) | static_cast<uint32_t>(bits >> 57);
  return pack(time_ns, bits, 0, 0, kRawWide, rest << 4 | kDetailStep, event_salt);
}
inline bool is_step(const RawEvent& e) {
  return action_of(e) == kRawWide && (stack_of(e) & 15) == kDetailStep;
}
inline bool has_step(const RawEvent& e) { return stack_of(e) >> 4 & kStepIsKnown; }
inline int64_t step_of(const RawEvent& e) {
  return static_cast<int64_t>(address_of(e) | uint64_t{stack_of(e) >> 4 & 127} << 57);
}

/// How many events `count` whole records are: a pair of a segment is one, wide sizes, totals, steps
/// and marks belong to one or are none.
inline uint32_t events_among(const RawEvent* records, uint32_t count) {
  uint32_t events = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const RawAction action = action_of(records[i]);
    const uint32_t detail = stack_of(records[i]) & 15;
    const bool is_segment = detail >= kDetailSegmentAlloc && detail <= kDetailSegmentUnmap;
    events += (action >= kRawAlloc && action <= kRawOom) || (action == kRawWide && is_segment);
  }
  return events;
}

inline RawEvent pack_mark(uint64_t time_ns, RawMarkKind kind, uint64_t address, uint64_t value,
                          uint32_t string, uint8_t event_salt) {
  return pack(time_ns, address, 0, value, kRawMark, string << 4 | kind, event_salt);
}
inline RawMarkKind mark_kind_of(const RawEvent& e) { return RawMarkKind(stack_of(e) & 15); }
inline uint32_t mark_string_of(const RawEvent& e) { return stack_of(e) >> 4; }
/// The other storage of a kMarkCopied.
inline uint64_t mark_source_of(const RawEvent& e) {
  return size_of(e) | uint64_t{mark_string_of(e)} << 37;
}
inline constexpr uint32_t kMaxMarkString = (1u << 20) - 1;

/// A definition: this header, then `length` bytes. The parity byte makes the XOR of all bytes equal
/// to salt(stream, sequence). Ids are explicit, so a lost chunk makes names unknown, never wrong. A
/// stream may define the same thing twice under two ids: the writer's tables are caches.
struct DefinitionHeader {
  uint8_t type;
  uint8_t parity;
  uint16_t length;
};

enum DefinitionType : uint8_t {
  kDefThread = 1,       // u32 tid, name
  kDefString = 2,       // u32 id, bytes (UTF-8, cut at kMaxString)
  kDefFrame = 3,        // u32 id, u32 file string, u32 function string, u32 line
  kDefNativeFrame = 4,  // u32 id, u64 pc (of the call, so the return address - 1)
  kDefStack =
      5,  // u32 id, u32 base, u16 keep, u16 n, n x u32 frame: from the root, keep of base's, then n
  kDefDevice =
      6,  // u8 class, i8 type, i8 index, u8 layer, u8 size_is_requested, name (may be empty)
  kDefModule = 7,     // u64 start, u64 end, u64 bias, path
  kDefPlacement = 8,  // u32 id, i64 stream, i64 and i64 of the memory pool's id
  kDefAllocator = 9,  // i8 type, i8 index, u8 is followed, u8 0, u64 bytes of the device, u16 and
                      // u16 lengths of the first two of: version, settings, why it is not followed
};
inline constexpr uint32_t kMaxString = 4096;
inline constexpr uint32_t kMaxFrames = 128;
inline constexpr uint32_t kMaxDeviceName = 64;

// Device classes that need no definition.
inline constexpr uint32_t kClassCpu = 0;
inline constexpr uint32_t kClassShared = 1;

/// Up to a multiple of `page`, a power of two.
inline uint64_t round_to(uint64_t n, uint64_t page) { return (n + page - 1) & ~(page - 1); }
inline uint64_t round_to_page(uint64_t n) { return round_to(n, kPage); }

}  // namespace gpumemprof::format
