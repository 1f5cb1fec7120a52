// The memory that `run` shares with the processes it records: the pages of their files that change
// while they run, in one sealed memfd. A store into it can neither raise a signal nor be lost with
// the process: no file system has a say in it. Prose: docs/recording-format.md, "The arena".
// C library only: this is compiled into other people's processes.
#pragma once

#include <stdint.h>

#include "format/format.h"

namespace gpumemprof::format {

inline constexpr char kArenaName[] = "gpumemprof-arena";  // of the memfd, as /proc/PID/fd shows it
inline constexpr char kArenaLink[] = "/memfd:gpumemprof-arena";
inline constexpr uint64_t kArenaMagic = 0x314e52414d504d47;     // "GMPMARN1"
inline constexpr uint64_t kArenaMostBytes = uint64_t{1} << 40;  // sparse

/// What can be the matter with a process that has no file.
enum UnrecordedAt : uint32_t {
  kAtCreation = 1,  // the file could not be made
  kAtFirstPage = 2  // nor its first page written or kept
};

enum UnrecordedNotes : uint32_t {
  kNoInodesThen = 1,    // the process saw that
  kNoted = 2,           // who keeps the arena has looked at the entry
  kFolderWasThere = 4,  // and saw that then
};

/// A process that could make no file counts here what it would have recorded. `state` 0 is a free
/// entry, kTaken one that is being filled, kFilled one that may be read. The process alone takes
/// one. Who keeps the arena makes that of a process that is gone kEnded, or adds it to an ended one
/// of the same command and reason and frees it: so everything is in here, whoever is killed.
struct Unrecorded {
  static constexpr uint32_t kTaken = 1, kFilled = 2, kEnded = 3;
  uint32_t state;
  uint32_t pid;               // as /proc shows it, else as the process itself sees it
  uint64_t start_ticks;       // 0 where the process could not read it
  uint32_t at;                // UnrecordedAt
  int32_t error;              // errno
  uint32_t user;              // effective
  uint32_t notes;             // UnrecordedNotes
  uint64_t file_limit_bytes;  // RLIMIT_FSIZE; UINT64_MAX: none
  uint64_t events, bytes;     // bytes: of allocations
  uint64_t processes;
  char command[192];  // argv with spaces, cut
};
static_assert(sizeof(Unrecorded) == 256);

inline constexpr uint32_t kArenaProcesses = 4096;
/// In every free entry of `processes` once nobody keeps the arena: no process lists itself any more.
inline constexpr uint64_t kClosedEntry = 1;
inline constexpr uint32_t kArenaUnrecorded = 128;

/// The first pages, mapped by every recorded process and made present before the first of them.
struct ArenaHeader {
  uint64_t magic;
  uint64_t id;           // random: a number of another arena's is never taken for this one's
  uint64_t bytes;        // of the whole arena
  uint64_t next_offset;  // fetch_add claims a place
  uint64_t pad[4];
  Unrecorded crowd;  // of processes that found no free entry, together
  Unrecorded unrecorded[kArenaUnrecorded];
  /// Offsets of their ArenaPlaces, 0: free, or kClosedEntry. The process puts its own there, whoever
  /// keeps the arena takes it out when the file has all of it.
  uint64_t processes[kArenaProcesses];
};
inline constexpr uint64_t kArenaHeaderBytes = 17 * kPage;
static_assert(sizeof(ArenaHeader) <= kArenaHeaderBytes);

/// A page before each piece of a file that lies here, which follows it. Of a process the piece is
/// the file's first page, of a thread a stage. Written once, but for `is_final`, `first_stage`.
struct ArenaPlace {
  uint64_t magic;  // kArenaMagic ^ the place's offset
  uint64_t recording_id;
  uint64_t file_offset, length;  // of the piece
  uint64_t next_stage;           // the place of the stage before, 0: the last
  // Of a process alone:
  uint64_t first_stage;  // the newest, 0: none
  uint64_t is_final;     // 1: the file has everything, and this page counts no more
  uint64_t start_ticks;
  uint64_t device, inode;  // of the file: a copy of it is not what this memory belongs to
  uint32_t pid;            // as /proc shows it
  uint32_t pad;
  char file[256];  // name in the folder
};
static_assert(sizeof(ArenaPlace) <= kPage);

/// At kHolderOffset of a file's first page: where what is newer than the file is to be found. Zeros
/// in a file that has everything. /proc/PID/fd/FD of either is the arena.
struct ArenaHolder {
  uint64_t arena_id;
  uint64_t place;  // the process's ArenaPlace
  uint32_t pid[2], fd[2];
};
inline constexpr uint32_t kHolderOffset = 3904;
static_assert(kCountsOffset + sizeof(FileCounts) <= kHolderOffset &&
              kHolderOffset + sizeof(ArenaHolder) <= kPage);

}  // namespace gpumemprof::format
