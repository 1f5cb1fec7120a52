// Lines that keep memory together: one bug is one finding, however many lines its memory comes
// from.
//
// A graph that is kept holds what every line of a forward pass made: a model of twenty lines would
// be twenty findings, each with the same words.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_names.h"

namespace gpumemprof {

struct LeakGroup {
  std::vector<const Leak*> lines;  ///< the one that grows most first; never empty
  Leak whole;                      ///< the sums of all lines; its node is the first one's
  LeakEvidence evidence;           ///< of the whole; the holder is that of the first line
  const LeakName* name = nullptr;  ///< of every line
  std::vector<uint32_t> caches;    ///< stacks of lines that keep nothing but a KV cache
  /// Path of what holds all lines, where several attributes of its objects do; or empty.
  std::string_view container;
};

/// Lines of one process and device whose bug has the same name and whose memory the same object
/// holds. Where nobody knows who holds it the name is all that is asked for; lines of no known bug
/// stay alone, but for those that rise in the same few steps as what modules made, or that autograd
/// saved for a graph that is kept, and those of variables beside functions that TensorFlow traces
/// again and again. Attributes of the objects in one container are held by it.
/// `leaks` must live as long; in their order. Adds to `steps`, where it is given, how many groups
/// were looked at.
std::vector<LeakGroup> group_leaks(const std::vector<Leak>& leaks, const Tables& tables,
                                   const HolderStacks& holders, const ToldOfStack& told_of = {},
                                   uint64_t* steps = nullptr);

}  // namespace gpumemprof
