// Of what was allocated within an optimizer's step: whether the step's own code asked for it, or
// what the step called, the closure of the program's loop. LBFGS and the loops of trainers run
// forward and backward so: `optimizer.step(closure)`.
#pragma once

#include <span>
#include <string_view>

namespace gpumemprof {

struct CodeFrame {
  std::string_view file, function;
};

/// `inner`: the frames of code within the wrapper that torch.optim.Optimizer puts around a step,
/// innermost first; `wrapper_file`: the file of that wrapper's frame. An optimizer that is not
/// PyTorch's own has frames of its own: there only what turned gradients on again, or is in another
/// file than the step, is taken for a closure.
bool is_in_step_closure(std::span<const CodeFrame> inner, std::string_view wrapper_file,
                        bool has_gradients);

}  // namespace gpumemprof
