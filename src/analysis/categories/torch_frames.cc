#include "analysis/categories/torch_frames.h"

#include "base/path_parts.h"

namespace gpumemprof {

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

}  // namespace gpumemprof
