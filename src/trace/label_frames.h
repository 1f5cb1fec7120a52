// Frames that are not code but context of an allocation (docs/attribution.md): at the inner end of
// a stack, without a line; the file tells the kind of the function's name.
#pragma once

#include <string_view>

namespace gpumemprof {

/// The innermost module being called. In a recording "Class@address"; readers replace it by the
/// module's path, or by the class alone.
inline constexpr std::string_view kModuleFile = "<torch module>";
/// The class of the running autograd node.
inline constexpr std::string_view kBackwardFile = "<torch backward>";
/// kNoGrad or kInference.
inline constexpr std::string_view kModeFile = "<torch mode>";
inline constexpr std::string_view kNoGrad = "no grad", kInference = "inference";
/// The innermost phase named by the program.
inline constexpr std::string_view kPhaseFile = "<phase>";

/// A layer named by the program: what the thread is working on (gpumemprof_set_layer), or what is
/// known of an operation's scope. Between the operation's name and the frames of code.
inline constexpr std::string_view kLayerScopeFile = "<layer>";
/// A class of TensorFlow's runtime: the memory belongs to an object of the runtime, such as a graph
/// or a cached scalar, not to a tensor.
inline constexpr std::string_view kInternalFile = "<tensorflow internal>";

/// The file that a map is of (`run --host`).
inline constexpr std::string_view kFileMapFile = "<file map>";

inline bool is_torch_label(std::string_view file) {
  return file == kModuleFile || file == kBackwardFile || file == kModeFile || file == kPhaseFile;
}

}  // namespace gpumemprof
