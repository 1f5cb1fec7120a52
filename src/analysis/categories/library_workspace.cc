#include "analysis/categories/library_workspace.h"

#include <algorithm>
#include <array>

namespace gpumemprof {
namespace {

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
