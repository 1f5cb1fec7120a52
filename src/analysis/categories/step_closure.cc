#include "analysis/categories/step_closure.h"

#include <algorithm>

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

}  // namespace

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

}  // namespace gpumemprof
