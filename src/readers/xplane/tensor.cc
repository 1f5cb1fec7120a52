#include "readers/xplane/tensor.h"

#include <algorithm>
#include <array>

namespace gpumemprof::xplane {
namespace {

// By number, from 1 on: tensorflow/core/framework/types.proto.
constexpr std::array<std::string_view, 30> kTypes = {"float32",
                                                     "float64",
                                                     "int32",
                                                     "uint8",
                                                     "int16",
                                                     "int8",
                                                     "string",
                                                     "complex64",
                                                     "int64",
                                                     "bool",
                                                     "qint8",
                                                     "quint8",
                                                     "qint32",
                                                     "bfloat16",
                                                     "qint16",
                                                     "quint16",
                                                     "uint16",
                                                     "complex128",
                                                     "float16",
                                                     "resource",
                                                     "variant",
                                                     "uint32",
                                                     "uint64",
                                                     "float8_e5m2",
                                                     "float8_e4m3fn",
                                                     "float8_e4m3fnuz",
                                                     "float8_e4m3b11fnuz",
                                                     "float8_e5m2fnuz",
                                                     "int4",
                                                     "uint4"};

constexpr size_t kMostShape = 254 * 21;  // a tensor has at most 254 dimensions of 64 bits

bool is_shape(std::string_view text) {
  if (text.size() < 2 || text.size() > kMostShape) return false;
  if (text.front() != '[' || text.back() != ']') return false;
  return std::ranges::all_of(text.substr(1, text.size() - 2),
                             [](char c) { return (c >= '0' && c <= '9') || c == ',' || c == '?'; });
}

}  // namespace

std::string tensor_text(int64_t data_type, std::string_view shape) {
  if (!is_shape(shape)) return {};
  std::string out;
  if (data_type > 0 && data_type <= static_cast<int64_t>(kTypes.size())) {
    out = kTypes[static_cast<size_t>(data_type - 1)];
  } else if (data_type != 0) {
    out = "type " + std::to_string(data_type) + " ";
  }
  return out.append(shape);
}

}  // namespace gpumemprof::xplane
