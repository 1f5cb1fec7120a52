// Which line of a stack is the user's own: the place that the user can change.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/tables.h"

namespace gpumemprof {

/// False for installed packages, the standard library, generated and native code.
bool is_user_file(std::string_view file);

/// The module whose file PyTorch Geometric writes for a layer and imports, without the eight random
/// characters of tempfile: the same in every run. Empty for any other file. Names: those of its
/// module_from_template().
std::string_view module_of_layer(std::string_view file);

/// True for a C, C++ or CUDA file, and for an unknown one ("??").
bool is_native_source(std::string_view file);

/// The node of the innermost Python frame of any kind; 0 if the stack has none.
uint32_t python_node(const Tables& tables, uint32_t stack);

/// The node of the innermost frame in the user's own code; 0 if the stack has none.
uint32_t own_node(const Tables& tables, uint32_t stack);

}  // namespace gpumemprof
