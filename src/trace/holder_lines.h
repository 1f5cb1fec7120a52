// Which line of a stack to name, and what those lines hold: users can change their own code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/live_state.h"

namespace gpumemprof {

/// The node of the frame that names the stack in one line: the innermost one in the user's own
/// code, otherwise in a Python library, otherwise PyTorch's operator (at::_ops), otherwise the
/// innermost that does not belong to taking the stack. 0 without a stack.
uint32_t headline_node(const Tables& tables, uint32_t stack);

/// The same for many stacks: the name of a file is looked at once. `tables` must outlive it and not
/// grow. Not thread-safe.
class HeadlineNodes {
 public:
  explicit HeadlineNodes(const Tables& tables);
  uint32_t of(uint32_t stack);

 private:
  enum class Owner : uint8_t { kUnknown, kUser, kOther };
  bool is_users(uint32_t file);

  const Tables& tables_;
  std::vector<Owner> owners_;  // by string id
};

/// "train.py:41", of the frame of a node; "a place without a stack" where it has no file.
std::string short_line(const Tables& tables, uint32_t node);

/// The sum of holders with the same headline line.
struct HolderLine {
  uint32_t node = 0;  ///< of the headline frame; 0: no stack known
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::vector<Holder> stacks;  ///< in the order they came
};

/// By headline frame, largest first.
std::vector<HolderLine> group_by_line(const std::vector<Holder>& holders, const Tables& tables);
/// By innermost frame, often a library's: what a user's line led to.
std::vector<HolderLine> group_by_innermost(const std::vector<Holder>& holders,
                                           const Tables& tables);

// The order of every list of holders.

/// Largest first; of equals, the lower id.
inline constexpr auto comes_first = [](const Holder& a, const Holder& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
};

}  // namespace gpumemprof
