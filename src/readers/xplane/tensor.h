// What a tensor is, in the words of a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpumemprof::xplane {

/// The file of a frame that says what a block was allocated as: "float32[32,64]". It stands below
/// that of the operation.
inline constexpr std::string_view kTensorFile = "<tensorflow tensor>";

/// `data_type`: a number of TensorFlow's types.proto; "type 99" of one that is not known, nothing
/// of 0, which is none. `shape`: "[32,64]", as TensorFlow prints it; empty is returned where it is
/// anything else, or too long to be one.
std::string tensor_text(int64_t data_type, std::string_view shape);

}  // namespace gpumemprof::xplane
