// The tasks of a DataLoader's worker, told apart by the stacks of what it allocates.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/categories/torch_frames.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Of a stack of a task: the frame of the function that does it. At one of its lines the function
/// makes samples, at another it joins them into a batch. 0: of no such stack.
inline uint32_t task_frame(const Tables& tables, uint32_t stack) {
  const uint32_t node = tables.stacks.find_node(stack, [&](const Frame& frame) {
    return is_torch_file(tables.strings.get(frame.file), "utils/data/_utils/fetch.py") &&
           is_called(tables.strings.get(frame.function), "fetch");
  });
  return node == 0 ? 0 : tables.stacks.node(node).frame;
}

/// Of one worker. Each line of a task has one turn in each task, unless only one of them allocates.
class LoaderTurns {
 public:
  /// The number of the turn, from 1, in which a line allocates. In the order of the allocations.
  uint64_t of_line(uint32_t frame) {
    if (frame != frame_) frame_ = frame, ++turns_;
    return turns_;
  }

 private:
  uint32_t frame_ = 0;
  uint64_t turns_ = 0;
};

}  // namespace gpumemprof
