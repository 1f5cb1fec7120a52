// What newer recorders say in a kRawMark, beside the kinds of format.h.
#pragma once

#include "format/format.h"

namespace gpumemprof::format {

/// address = where the storage begins that was copied into; where the other one begins: size, and
/// above it the bits of string.
inline constexpr RawMarkKind kMarkCopied = static_cast<RawMarkKind>(7);
inline constexpr RawMarkKind kLastMark = kMarkCopied;

/// Of kMarkSaved: it has autograd metadata and requires no grad all the same, as a view of data.
inline constexpr uint64_t kSavedIsConstant = 4;

/// Of kMarkRole: what was told of the address before no longer holds.
inline constexpr uint64_t kRoleNone = 0;
/// Of kMarkRole without an address, which is of the process. All roles were looked at: what was
/// told and not taken back holds now, for whatever block lies there.
inline constexpr uint64_t kRolesHold = 0;
/// The program's code has run: the interpreter frees what it had kept.
inline constexpr uint64_t kProgramEnds = 1;

/// The other storage of a kMarkCopied.
inline uint64_t mark_source_of(const RawEvent& e) {
  return size_of(e) | uint64_t{mark_string_of(e)} << 37;
}

}  // namespace gpumemprof::format
