#include "analysis/categories/torch_frames.h"

#include <algorithm>
#include <array>

#include "base/path_parts.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kWrapperFile = "optim/optimizer.py";

bool is_package(std::string_view file) {
  return file.ends_with(".py") &&
         (path_has(file, "/site-packages/") || path_has(file, "/dist-packages/"));
}

/// A tensor of a class with operators of its own: the step's own arithmetic leads there.
bool is_dispatched(std::string_view function) {
  return function.ends_with("__torch_dispatch__") || function.ends_with("__torch_function__");
}

bool switches_gradients(const CodeFrame& frame) {
  return path_ends_with(frame.file, "/torch/utils/_contextlib.py") ||
         path_ends_with(frame.file, "/torch/autograd/grad_mode.py");  // before 2.0
}

/// A tensor, or the operation itself: whatever lies further out is no scratch memory's.
constexpr std::array<std::string_view, 11> kMakesTensor = {
    "at::detail::empty", "at::detail::_empty", "at::_ops::",           "at::native::empty",
    "at::empty",         "resize_bytes",       "at::StorageImpl",      "c10::StorageImpl",
    "THPStorage",        "at::native::resize", "ideep::tensor::reinit"};

/// The last is a copy in oneDNN's own layout, for as long as its primitive runs.
constexpr std::array<std::string_view, 17> kAsksForScratch = {
    "getNewWorkspace",
    "getCUDABlasLtWorkspace",
    "getCurrentCUDABlasHandle",
    "getCurrentCUDABlasLtWorkspace",
    "CublasLtWorkspace",
    "at::cuda::blas::",
    "at::native::run_conv_plan",
    "at::native::Workspace",
    "cudnn",
    "miopen",
    "cusolver",
    "cusparse",
    "cub::",
    "thrust::",
    "ThrustAllocator",
    "scratchpad",
    "ideep::tensor::reorder_if_differ_in"};

bool has_any(std::string_view text, auto const& parts) {
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return text.find(part) != text.npos; });
}

bool is_python(std::string_view file) { return file.ends_with(".py") || file.starts_with('<'); }

}  // namespace

bool is_torch_file(std::string_view file, std::string_view tail) {
  if (!path_ends_with(file, tail)) return false;
  return path_ends_with(file.substr(0, file.size() - tail.size()), "/torch/");
}

bool is_called(std::string_view function, std::string_view name) {
  if (!function.contains('.')) return function == name.substr(name.rfind('.') + 1);
  if (!function.ends_with(name)) return false;
  return function.size() == name.size() || function[function.size() - name.size() - 1] == '.';
}

bool runs_module(std::string_view file, std::string_view function) {
  return is_torch_file(file, "nn/modules/module.py") &&
         (is_called(function, "_call_impl") || is_called(function, "_wrapped_call_impl"));
}

bool runs_backward(std::string_view file, std::string_view function) {
  return (is_torch_file(file, "autograd/graph.py") &&
          is_called(function, "_engine_run_backward")) ||
         (is_torch_file(file, "autograd/__init__.py") &&
          (is_called(function, "backward") || is_called(function, "grad") ||
           is_called(function, "_make_grads")));
}

bool loads_data(std::string_view file, std::string_view function) {
  return is_torch_file(file, "utils/data/dataloader.py") && is_called(function, "__next__");
}

bool is_in_step_closure(std::span<const CodeFrame> inner, std::string_view wrapper_file,
                        bool has_gradients) {
  const std::string_view torch = wrapper_file.substr(
      0, wrapper_file.size() - std::min(wrapper_file.size(), kWrapperFile.size()));
  bool is_switched = false;
  // From the wrapper inwards: decorators first, then the step.
  size_t i = inner.size();
  for (; i > 0; --i) {
    const CodeFrame& frame = inner[i - 1];
    is_switched |= switches_gradients(frame);
    if (frame.file != wrapper_file && !switches_gradients(frame)) break;
  }
  if (i == 0) return false;
  const CodeFrame& step = inner[--i];
  const bool is_torchs = step.file.starts_with(torch);
  for (; i > 0; --i) {
    const CodeFrame& frame = inner[i - 1];
    is_switched |= switches_gradients(frame);
    if (frame.file.starts_with(torch)) continue;
    const bool is_own = is_user_file(frame.file);
    if (is_dispatched(frame.function)) return false;
    if (!is_own && !is_package(frame.file)) continue;
    if (is_torchs) return true;
    if (has_gradients && (is_switched || (is_own && frame.file != step.file))) return true;
  }
  return false;
}

std::optional<bool> asks_for_workspace(std::string_view function) {
  // Arguments name classes that have nothing to do with it.
  const std::string_view name = function.substr(0, function.find('('));
  if (has_any(name, kMakesTensor)) return false;
  if (has_any(name, kAsksForScratch)) return true;
  return std::nullopt;
}

bool is_library_workspace(const Tables& tables, uint32_t stack) {
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    const std::string_view file = tables.strings.get(frame.file);
    // What the recorder adds stands further in than any code.
    if (frame.line == 0 && file.starts_with('<')) continue;
    if (is_python(file)) return false;
    const auto answer = asks_for_workspace(tables.strings.get(frame.function));
    if (answer) return *answer;
  }
  return false;
}

}  // namespace gpumemprof
