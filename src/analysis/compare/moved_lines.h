// Lines that have other numbers in another version of a program, matched by what they allocated.
//
// Frames have no text: of two runs of an edited file, line 13 of one may be line 14 of the other.
// A function whose lines differ is therefore aligned: its lines in order, as many as allocated
// equally often and equally much. A function with the same lines in both runs is left as it is.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>

#include "analysis/compare/diff.h"

namespace gpumemprof {

struct MovedLines {
  /// By frame of A: the number that it has in B; where B has none, one that no line has.
  absl::flat_hash_map<uint32_t, uint32_t> lines;
  uint64_t moved = 0;  ///< of these, lines that B has under another number
};

/// Of the user's own code. Functions with more lines than kMostMovedLines are left as they are. O(nodes
/// of both stack tables), and the square of a function's lines.
inline constexpr size_t kMostMovedLines = 200;
MovedLines moved_lines(const DiffSide& a, const DiffSide& b);

}  // namespace gpumemprof
