// Which of PyTorch's own functions a frame of Python is, on any system and by names that are
// qualified or not; what an optimizer's step called; what a library asked for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trace/tables.h"

namespace gpumemprof {

/// True for ".../torch/TAIL" on any system.
bool is_torch_file(std::string_view file, std::string_view tail);
/// "_apply" is called by "Module._apply", as newer releases name it, too; and "Module._apply" by
/// "_apply", which is all that a Python before 3.11 says.
bool is_called(std::string_view function, std::string_view name);

bool runs_module(std::string_view file, std::string_view function);
/// What autograd's engine calls between nodes and after the last (a model in shards makes gradients
/// there), and what backward makes before the first.
bool runs_backward(std::string_view file, std::string_view function);
bool loads_data(std::string_view file, std::string_view function);

// Of what was allocated within an optimizer's step: whether the step's own code asked for it, or
// what the step called, the closure of the program's loop. LBFGS and the loops of trainers run
// forward and backward so: `optimizer.step(closure)`.

struct CodeFrame {
  std::string_view file, function;
};

/// `inner`: the frames of code within the wrapper that torch.optim.Optimizer puts around a step,
/// innermost first; `wrapper_file`: the file of that wrapper's frame. An optimizer that is not
/// PyTorch's own has frames of its own: there only what turned gradients on again, or is in another
/// file than the step, is taken for a closure.
bool is_in_step_closure(std::span<const CodeFrame> inner, std::string_view wrapper_file,
                        bool has_gradients);

// Scratch memory that a library asks for itself: cuBLAS's and cuDNN's workspaces, what cub and
// thrust sort in, what oneDNN's primitives need. Told by native frames alone.

/// Of a native function between an allocator and the operation that was called: true where it asks
/// for a library's scratch memory, false where it makes a tensor, nothing where it could be either.
std::optional<bool> asks_for_workspace(std::string_view function);

/// The innermost native frame that says either, seen from the allocator outwards, decides; nothing
/// is looked for beyond the operation or the first Python frame. False without native frames.
/// Looks at all of them: keep the answer.
bool is_library_workspace(const Tables& tables, uint32_t stack);

/// What PyTorch gives a cuBLAS handle by default where the device is none of Hopper's
/// (":4096:2:16:8", at::cuda::parseChosenWorkspaceSize): 65 × 128 KiB, which no tensor of powers of
/// two has. Hopper's 32 MiB are also those of many a weight, so that size says nothing.
inline constexpr uint64_t kCublasWorkspaceBytes = (4096 * 2 + 16 * 8) * 1024;

/// Whether it is the size of a cuBLAS or cuBLASLt workspace by default: also Hopper's 32 MiB, and
/// 1 MiB of cuBLASLt. Says something only of a block that its stack made once, for all steps.
inline bool is_workspace_size(uint64_t bytes) {
  return bytes == kCublasWorkspaceBytes || bytes == 32 << 20 || bytes == 1 << 20;
}

}  // namespace gpumemprof
