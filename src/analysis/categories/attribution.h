// What a stack of a PyTorch program says of the work that memory was allocated for: module, phase
// and autograd node. Read from the frames that the recorder adds (trace/label_frames.h) and from
// files of PyTorch's own; nothing is guessed from names of the user's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/tables.h"

namespace gpumemprof {

enum class WorkPhase : uint8_t {
  kNone,         ///< outside any module, autograd node or optimizer
  kForward,      ///< in a module's call, or recomputed by checkpointing within one
  kBackward,     ///< while an autograd node ran
  kOptimizer,    ///< in an optimizer's step
  kDataLoading,  ///< in a DataLoader's __next__
  kEvaluation,   ///< in a module's call without gradients
};
/// "forward", "backward", "optimizer", "data loading", "evaluation"; "" for kNone.
const char* work_phase_name(WorkPhase phase);

/// Views point into the tables.
struct Attribution {
  std::string_view module;      ///< path, or class where the path is not known; empty: none
  std::string_view node;        ///< "AddmmBackward0"; empty outside of backward
  std::string_view user_phase;  ///< empty: none was open
  WorkPhase phase = WorkPhase::kNone;
  bool has_gradients = true;    ///< they were on
  bool is_recomputed = false;  ///< a forward that checkpointing repeats within backward
  bool is_in_setup = false;    ///< PyTorch makes or moves what a module consists of
  bool is_weight_copy = false; ///< PyTorch copies a parameter, a model to average it, or
                               ///< what is saved, an optimizer's state too
  bool is_reducer = false;     ///< DistributedDataParallel's buckets of gradients
  bool is_collective = false;  ///< torch.distributed makes it: what is gathered, scattered or sent
  bool is_in_step = false;     ///< within an optimizer's step, perhaps in what its closure runs
  bool is_computed = false;    ///< in the forward of an autograd Function, or of a module whose class
                               ///< has a __call__ of its own: by a computation, so it is no data
  bool is_kv_update = false;   ///< transformers appends a call's keys and values to its cache
  bool is_workspace = false;   ///< a library's own scratch memory (torch_frames.h)
};
/// Looks at all frames: keep the answer.
Attribution attribution_of(const Tables& tables, uint32_t stack);

/// Answers that were given, by stack. Not thread-safe; `tables` must outlive it.
class Attributions {
 public:
  explicit Attributions(const Tables& tables) : tables_(tables) {}
  /// Valid until the next call.
  const Attribution& of(uint32_t stack);

 private:
  const Tables& tables_;
  std::vector<uint32_t> index_;  // by stack; 0: not asked yet
  std::vector<Attribution> known_;
};

/// Of the name that a mark gave to a storage, the module: of "encoder.0.weight" and of "exp_avg of
/// encoder.0.weight" it is "encoder.0". "" where the name has no path.
std::string_view module_of_storage(std::string_view name);
/// The name is that of a block that holds the gradients of several parameters, "12 gradients of
/// blocks.0.*". Its owner may keep it when they are dropped.
bool is_of_several_gradients(std::string_view name);

}  // namespace gpumemprof
