// The process's side of the arena (format/arena.h): memory of `run` for what must not fail. Forked
// children inherit the mapping of its first pages, whatever rights they give up.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/arena.h"

namespace gpumemprof::probe {

/// The arena's address, as `run` passes it in GPUMEMPROF_ARENA: "ID.PID.FD.PID.FD", in decimals.
/// Any other text means none.
struct ArenaAddress {
  uint64_t id;  // 0: none
  uint32_t pid[2], fd[2];
};
ArenaAddress parse_arena_address(const char* text);
extern ArenaAddress g_arena_address;

/// Maps the first pages, once; a forked child inherits them. False if there is no arena, or it may
/// not be opened.
bool use_arena();

/// Reserves a place for `length` bytes of the file from `file_offset` on, zeroed and present; they
/// begin a page after the place. Null on failure. Nobody reads it before it is listed.
format::ArenaPlace* claim_arena_place(uint64_t file_offset, uint64_t length);
inline uint8_t* piece_of(format::ArenaPlace* place) {
  return reinterpret_cast<uint8_t*>(place) + format::kPage;
}
inline format::ArenaPlace* place_of(uint8_t* piece) {
  return reinterpret_cast<format::ArenaPlace*>(piece - format::kPage);
}
/// The arena memory of a claimed place.
inline uint64_t offset_of(const format::ArenaPlace* place) {
  return place->magic ^ format::kArenaMagic;
}

/// Lists this process's place, which must be filled in. False if there are too many processes.
bool list_process(const format::ArenaPlace* place);
/// Lists a thread's place in its process's.
void list_stage(format::ArenaPlace* process, format::ArenaPlace* stage);

/// argv of this process, for its forked children, some of which cannot read theirs.
void remember_command(const char* command);
/// Reports that this process has no file and why (errno); from now on count_unrecorded() counts.
/// False without an arena.
bool begin_unrecorded(format::UnrecordedAt at, long error);
/// An event that is not recorded; `bytes` of an allocation, else 0. No system call.
void count_unrecorded(uint64_t bytes);
/// In a forked child: drops the parent's counter.
void forget_unrecorded();

}  // namespace gpumemprof::probe
