// Frames that are no code but say what was going on when memory was allocated
// (docs/attribution.md): at the inner end of a stack, without a line; the file says what kind of
// name the function is.
#pragma once

#include <string_view>

namespace gpumemprof {

/// The innermost module that is being called. In a recording "Class@address"; a reader puts the
/// module's path there, or the class alone.
inline constexpr std::string_view kModuleFile = "<torch module>";
/// The class of the autograd node that runs.
inline constexpr std::string_view kBackwardFile = "<torch backward>";
/// kNoGrad or kInference.
inline constexpr std::string_view kModeFile = "<torch mode>";
inline constexpr std::string_view kNoGrad = "no grad", kInference = "inference";
/// The innermost phase that the program has named.
inline constexpr std::string_view kPhaseFile = "<phase>";

/// A layer as the program names it: what the thread said it works on (gpumemprof_set_layer), or
/// what is known of an operation's scope. Between an operation's name and the frames of code.
inline constexpr std::string_view kLayerScopeFile = "<layer>";
/// A class of TensorFlow's runtime: the memory is that of an object of its own, a graph or a scalar
/// that is kept for the next one who needs it, and no tensor's.
inline constexpr std::string_view kInternalFile = "<tensorflow internal>";

inline bool is_torch_label(std::string_view file) {
  return file == kModuleFile || file == kBackwardFile || file == kModeFile || file == kPhaseFile;
}

}  // namespace gpumemprof
