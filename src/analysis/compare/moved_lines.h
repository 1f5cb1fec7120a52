// Lines that have other numbers in another version of a program, matched by what they allocated.
//
// Frames have no text: of two runs of an edited file, line 13 of one may be line 14 of the other.
// A function whose lines differ is therefore aligned: its lines in order, as many as allocated
// equally often and equally much, and read alike where their text is known. A function with the
// same lines in both runs is left as it is.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/compare/common_names.h"
#include "analysis/compare/diff.h"

namespace gpumemprof {

/// A line of a function, and what went through it.
struct FunctionLine {
  uint32_t line = 0, frame = 0;
  uint64_t count = 0, bytes = 0;
  std::string_view source;  ///< its text; empty: not known
};

/// Indices in a and in b, both rising.
using LinePairs = std::vector<std::pair<size_t, size_t>>;

/// The lines of one function in two versions, each by rising numbers: which are the same. Nothing
/// where the numbers hold. Functions with more lines than kMostMovedLines hold. O(lines squared).
inline constexpr size_t kMostMovedLines = 200;
std::optional<LinePairs> moved_pairs(const std::vector<FunctionLine>& a,
                                     const std::vector<FunctionLine>& b);

struct MovedLines {
  /// By frame of A: the number that it has in B; where B has none, one that no line has.
  absl::flat_hash_map<uint32_t, uint32_t> lines;
  uint64_t moved = 0;  ///< of these, lines that B has under another number
};

/// Of the user's own code. O(nodes of both stack tables), and the square of a function's lines.
MovedLines moved_lines(const DiffSide& a, const DiffSide& b, CommonNames* names);

}  // namespace gpumemprof
