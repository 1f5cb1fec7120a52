// ONNX models: what their weights take, by arithmetic over the shapes in the file, and what has to
// be put in to run them. The graph itself is not looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace gpumemprof {

struct OnnxDimension {
  std::optional<uint64_t> size;  ///< absent: open
  std::string name;              ///< of an open one; may be empty
};

struct OnnxInput {
  std::string name;
  int32_t element_type = 0;  ///< TensorProto.DataType
  std::vector<OnnxDimension> dimensions;
};

struct OnnxModel {
  uint64_t weight_bytes = 0, weight_count = 0;
  std::map<std::string, uint64_t> weight_bytes_by_type;
  uint64_t external_bytes = 0;    ///< of them: in other files than this
  std::vector<OnnxInput> inputs;  ///< without those that are weights
  std::vector<std::string> outputs;
};

/// An input as it is put in.
struct OnnxShape {
  std::string name, type;
  int32_t element_type = 0;
  std::vector<uint64_t> sizes;
  uint64_t size_bytes = 0;
};

/// Weights are initializers and constants, in inner graphs too. Errors: kBadInput with the byte,
/// kSystem.
Result<OnnxModel> read_onnx_model(File& file);

/// Sizes by name of a dimension, or by INPUT.INDEX; a `batch` other than 0 is that of open first
/// dimensions. Errors: kUsage where one stays open, is closed already, or is no dimension;
/// kUnsupported for elements that have no fixed size (texts).
Result<std::vector<OnnxShape>> resolve_onnx_inputs(const OnnxModel& model, uint64_t batch,
                                                   const std::map<std::string, uint64_t>& sizes);

}  // namespace gpumemprof
