// What newer recorders say beside the kinds of event.h, and how their marks of storages are to be
// read.
#pragma once

#include "trace/event.h"

namespace gpumemprof {

/// The storage at `value` was copied into that at `address`.
inline constexpr MarkKind kMarkOfCopy = static_cast<MarkKind>(7);
inline constexpr MarkKind kLastMarkKind = kMarkOfCopy;

/// Of MarkKind::kSaved: it has autograd metadata, and requires no gradient all the same.
inline constexpr uint64_t kSavedIsConstant = 4;

/// Of MarkKind::kRole: what was told of the address before no longer holds.
inline constexpr uint64_t kNoRole = 0;
/// Of MarkKind::kRole without an address, which is of the whole process. All roles were looked at:
/// what was told of an address and not taken back holds now, for whatever block lies there.
inline constexpr uint64_t kRolesHold = 0;
/// The program's code has run: what is freed from here on was kept to its end.
inline constexpr uint64_t kProgramEnds = 1;

}  // namespace gpumemprof
