// Which of PyTorch's own functions a frame of Python is, on any system and by names that are
// qualified or not.
#pragma once

#include <string_view>

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

}  // namespace gpumemprof
