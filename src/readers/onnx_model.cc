// Numbers of fields: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#include "readers/onnx_model.h"

#include <algorithm>
#include <set>

#include "readers/protobuf.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMostWeightBytes = uint64_t{1} << 50;  // of all weights: no machine has them
constexpr size_t kMostNames = 1 << 16, kMostNameBytes = 1 << 10, kMostDimensions = 64;
constexpr int kMostDepth = 32;  // graphs in attributes of nodes

struct OnnxType {
  const char* name;
  unsigned bits;  // 0: of no fixed size
};
/// By TensorProto.DataType.
constexpr OnnxType kTypes[] = {
    {"undefined", 0},      {"float32", 32},     {"uint8", 8},          {"int8", 8},
    {"uint16", 16},        {"int16", 16},       {"int32", 32},         {"int64", 64},
    {"string", 0},         {"bool", 8},         {"float16", 16},       {"float64", 64},
    {"uint32", 32},        {"uint64", 64},      {"complex64", 64},     {"complex128", 128},
    {"bfloat16", 16},      {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},        {"int4", 4},           {"float4e2m1", 4},
};
OnnxType type_of(uint64_t number) {
  return number < std::size(kTypes) ? kTypes[number] : OnnxType{"unknown", 0};
}

/// Absent: more than kMostWeightBytes.
std::optional<uint64_t> bytes_of(const std::vector<uint64_t>& sizes, unsigned bits) {
  unsigned __int128 elements = 1;
  if (std::ranges::find(sizes, 0u) != sizes.end()) return 0;
  for (const uint64_t size : sizes) {
    elements *= size;
    if (elements > kMostWeightBytes * 8) return std::nullopt;
  }
  const uint64_t bytes = (static_cast<uint64_t>(elements) * bits + 7) / 8;
  if (elements * bits > static_cast<unsigned __int128>(kMostWeightBytes) * 8) return std::nullopt;
  return bytes;
}

class OnnxParser {
 public:
  Result<OnnxModel> parse(std::string_view bytes) {
    ProtobufFields model(bytes);
    bool has_graph = false;
    while (!error_ && model.next()) {
      if (model.number() != 7) continue;
      has_graph = true;
      graph(model.message(), 0);
    }
    end(model);
    if (!error_ && !has_graph) refuse(0, "it has no graph: not an ONNX model");
    if (error_) return std::unexpected(*error_);
    std::erase_if(out_.inputs, [&](const OnnxInput& one) { return weights_.contains(one.name); });
    return std::move(out_);
  }

 private:
  void refuse(uint64_t offset, std::string message) {
    if (!error_) error_ = Error{ErrorCode::kBadInput, std::move(message), offset};
  }
  void end(const ProtobufFields& fields) {
    if (auto status = fields.status(); !status && !error_) error_ = status.error();
  }

  void graph(ProtobufFields fields, int depth) {
    if (depth > kMostDepth) return refuse(fields.offset(), "graphs are nested too deeply");
    while (!error_ && fields.next()) {
      if (fields.number() == 1) node(fields.message(), depth);
      if (fields.number() == 5) tensor(fields.message(), depth == 0);
      if (fields.number() == 15) sparse(fields.message());
      if (depth == 0 && fields.number() == 11) input(fields.message());
      if (depth == 0 && fields.number() == 12) output(fields.message());
    }
    end(fields);
  }

  /// Attributes with tensors are constants, those with graphs the branches of a condition.
  void node(ProtobufFields fields, int depth) {
    while (!error_ && fields.next()) {
      if (fields.number() != 5) continue;
      ProtobufFields attribute = fields.message();
      while (!error_ && attribute.next()) {
        if (attribute.number() == 5 || attribute.number() == 10) tensor(attribute.message(), false);
        if (attribute.number() == 6 || attribute.number() == 11)
          graph(attribute.message(), depth + 1);
        if (attribute.number() == 22 || attribute.number() == 23) sparse(attribute.message());
      }
      end(attribute);
    }
    end(fields);
  }

  void sparse(ProtobufFields fields) {
    while (!error_ && fields.next()) {
      if (fields.number() == 1 || fields.number() == 2) tensor(fields.message(), false);
    }
    end(fields);
  }

  void tensor(ProtobufFields fields, bool is_initializer) {
    std::vector<uint64_t> sizes;
    uint64_t type = 0, offset = 0, text_bytes = 0;
    bool is_external = false;
    std::string_view name;
    while (!error_ && fields.next()) {
      offset = fields.offset();
      if (fields.number() == 1) {
        fields.integers([&](uint64_t size) {
          if (size > kMostWeightBytes || sizes.size() >= kMostDimensions)
            return refuse(offset, "a weight has impossible sizes");
          sizes.push_back(size);
        });
      }
      if (fields.number() == 2) type = fields.unsigned_integer();
      if (fields.number() == 6) text_bytes += fields.bytes().size();
      if (fields.number() == 8) name = fields.bytes();
      if (fields.number() == 14) is_external = fields.unsigned_integer() == 1;
    }
    end(fields);
    if (error_) return;
    const OnnxType known = type_of(type);
    const auto bytes = known.bits == 0 ? text_bytes : bytes_of(sizes, known.bits);
    if (!bytes || *bytes > kMostWeightBytes - out_.weight_bytes)
      return refuse(offset, "weights larger than any machine's memory");
    out_.weight_bytes += *bytes;
    ++out_.weight_count;
    out_.weight_bytes_by_type[known.name] += *bytes;
    if (is_external) out_.external_bytes += *bytes;
    if (is_initializer && weights_.size() < kMostNames) weights_.emplace(name);
  }

  bool name_fits(std::string_view name, uint64_t offset) {
    if (name.size() <= kMostNameBytes && out_.inputs.size() + out_.outputs.size() < kMostNames)
      return true;
    refuse(offset, "more input and output names than a model can have");
    return false;
  }

  void output(ProtobufFields fields) {
    while (!error_ && fields.next()) {
      if (fields.number() == 1 && name_fits(fields.bytes(), fields.offset()))
        out_.outputs.emplace_back(fields.bytes());
    }
    end(fields);
  }

  void input(ProtobufFields fields) {
    OnnxInput one;
    while (!error_ && fields.next()) {
      if (fields.number() == 1 && name_fits(fields.bytes(), fields.offset()))
        one.name = fields.bytes();
      if (fields.number() != 2) continue;
      ProtobufFields type = fields.message();
      while (!error_ && type.next()) {
        if (type.number() == 1) tensor_type(type.message(), &one);
      }
      end(type);
    }
    end(fields);
    if (!error_) out_.inputs.push_back(std::move(one));
  }

  void tensor_type(ProtobufFields fields, OnnxInput* input) {
    while (!error_ && fields.next()) {
      if (fields.number() == 1)
        input->element_type = static_cast<int32_t>(fields.unsigned_integer() & 0x7fffffff);
      if (fields.number() != 2) continue;
      ProtobufFields shape = fields.message();
      while (!error_ && shape.next()) {
        if (shape.number() == 1) dimension(shape.message(), input);
      }
      end(shape);
    }
    end(fields);
  }

  void dimension(ProtobufFields fields, OnnxInput* input) {
    OnnxDimension one;
    while (!error_ && fields.next()) {
      if (fields.number() == 1) one.size = fields.unsigned_integer();
      if (fields.number() == 2 && name_fits(fields.bytes(), fields.offset()))
        one.name = fields.bytes();
    }
    end(fields);
    if (input->dimensions.size() >= kMostDimensions || (one.size && *one.size > kMostWeightBytes))
      return refuse(fields.offset(), "an input has impossible sizes");
    input->dimensions.push_back(std::move(one));
  }

  OnnxModel out_;
  std::set<std::string, std::less<>> weights_;  // inputs of the same name are their defaults
  std::optional<Error> error_;
};

std::string at_input(const OnnxInput& input, size_t index) {
  return input.name + '.' + std::to_string(index);
}

}  // namespace

Result<OnnxModel> read_onnx_model(File& file) {
  auto bytes = read_protobuf_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  return OnnxParser().parse(*bytes);
}

Result<std::vector<OnnxShape>> resolve_onnx_inputs(const OnnxModel& model, uint64_t batch,
                                                   const std::map<std::string, uint64_t>& sizes) {
  std::vector<OnnxShape> shapes;
  std::set<std::string> used;
  for (const OnnxInput& input : model.inputs) {
    const OnnxType type = type_of(static_cast<uint64_t>(input.element_type));
    if (type.bits == 0) {
      return fail(ErrorCode::kUnsupported, "input " + input.name + " is of type " + type.name +
                                               ", for which no values can be generated");
    }
    OnnxShape shape{input.name, type.name, input.element_type, {}, 0};
    for (size_t at = 0; at < input.dimensions.size(); ++at) {
      const OnnxDimension& dimension = input.dimensions[at];
      if (dimension.size) {
        if (at == 0 && batch != 0 && *dimension.size != batch) {
          return fail(ErrorCode::kUsage, "the first dimension of input " + input.name +
                                             " was exported as " + std::to_string(*dimension.size));
        }
        shape.sizes.push_back(*dimension.size);
        continue;
      }
      const std::string place = at_input(input, at);
      auto found = sizes.find(dimension.name.empty() ? place : dimension.name);
      if (found == sizes.end()) found = sizes.find(place);
      if (found != sizes.end()) used.insert(found->first);
      if (found == sizes.end() && !(at == 0 && batch != 0)) {
        return fail(ErrorCode::kUsage, "input " + input.name + " has an open dimension " +
                                           std::to_string(at) + ": give its size with --dim " +
                                           (dimension.name.empty() ? place : dimension.name) +
                                           "=N" + (at == 0 ? " or --batch N" : ""));
      }
      shape.sizes.push_back(found != sizes.end() ? found->second : batch);
    }
    const auto bytes = bytes_of(shape.sizes, type.bits);
    if (!bytes)
      return fail(ErrorCode::kUsage, "input " + input.name + " is larger than any memory");
    shape.size_bytes = *bytes;
    shapes.push_back(std::move(shape));
  }
  for (const auto& [name, size] : sizes) {
    if (!used.contains(name))
      return fail(ErrorCode::kUsage, "--dim " + name + ": no input has this open dimension");
  }
  return shapes;
}

}  // namespace gpumemprof
