// Lists of frames become stacks: each distinct list once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/id_index.h"
#include "trace/tables.h"

namespace gpumemprof::torch_snapshot {

/// A snapshot writes a list of frames for every allocation, innermost frame first; nearly all of
/// them have been there before. They are found by a hash of their frames and compared with the
/// nodes of the table, so that nothing is kept of a list but its stack.
class Stacks {
 public:
  explicit Stacks(StackTable& table);

  /// The stack of `frames`, innermost first; 0 for none.
  uint32_t intern(std::span<const uint32_t> frames);
  /// Puts the frames of `stack` behind `frames`, innermost first.
  void frames_of(uint32_t stack, std::vector<uint32_t>* frames) const;

 private:
  bool is_stack_of(uint32_t stack, std::span<const uint32_t> frames) const;
  bool is_near_last(std::span<const uint32_t> frames) const;
  uint32_t push(std::span<const uint32_t> frames);

  StackTable& table_;
  uint64_t seed_;  ///< another in every run, so that no file can be made of lists that collide
  struct Pushed {
    uint32_t frame, stack;
  };
  /// Of the two lists that were pushed last, outermost first: a list that comes in pieces is pushed
  /// as it begins, and then whole.
  std::vector<Pushed> last_, before_last_;
  IdIndex known_;  ///< by the hash of the frames
};

}  // namespace gpumemprof::torch_snapshot
