// What a stack of a PyTorch snapshot says of the work that memory was allocated for. A snapshot has
// code alone, none of the recorder's frames (attribution.h): files and functions of PyTorch's own
// are looked at, in Python and in C++; nothing is guessed from names of the user's.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/categories/attribution.h"
#include "trace/tables.h"

namespace gpumemprof {

struct SnapshotWork {
  /// What the innermost frame that says so was doing; never kEvaluation, of which no frame tells.
  WorkPhase phase = WorkPhase::kNone;
  bool has_python = false, has_native = false;  ///< frames of that kind; neither: no stack
  bool is_recomputed = false;     ///< backward calls forward again, as checkpointing does
  bool is_accumulated = false;    ///< in AccumulateGrad, which makes what a parameter's .grad is
  bool is_in_setup = false;       ///< PyTorch makes or moves what a module consists of
  bool clears_gradients = false;  ///< in zero_grad of an optimizer or a module
  bool is_without_gradients = false;  ///< in a function under torch.no_grad() or the like
  bool is_workspace = false;          ///< library_workspace.h
};
/// Answers that were given, by stack, and what each frame says. Not thread-safe; `tables` must
/// outlive it and not grow.
class SnapshotWorks {
 public:
  explicit SnapshotWorks(const Tables& tables)
      : tables_(tables),
        index_(tables.stacks.stack_count()),
        frames_(tables.stacks.frame_count()) {}
  /// Valid until the next call.
  const SnapshotWork& of(uint32_t stack);

 private:
  SnapshotWork look_at(uint32_t stack);

  const Tables& tables_;
  std::vector<uint32_t> index_;   // by stack; 0: not asked yet
  std::vector<uint16_t> frames_;  // by frame; 0: not looked at yet
  std::vector<SnapshotWork> known_;
};

}  // namespace gpumemprof
