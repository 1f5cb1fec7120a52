#include "readers/onnx_model.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "readers/memory_file.h"

namespace gpumemprof {
namespace {

constexpr int32_t kFloat = 1, kInt8 = 3, kText = 8, kInt4 = 22;

std::string tensor(const std::string& name, int32_t type, const std::vector<int64_t>& sizes,
                   bool is_external = false) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_packed_int64(1, sizes.begin(), sizes.end());
  out.add_int32(2, type);
  out.add_string(8, name);
  if (is_external) out.add_int32(14, 1);
  return bytes;
}

/// An input or output; a size below 0 is open, and called "batch" where it is -1.
std::string value(const std::string& name, int32_t type, const std::vector<int64_t>& sizes) {
  std::string bytes, of_tensor, shape;
  for (const int64_t size : sizes) {
    std::string dimension;
    protozero::pbf_writer one(dimension);
    if (size >= 0) one.add_int64(1, size);
    if (size == -1) one.add_string(2, "batch");
    protozero::pbf_writer(shape).add_message(1, dimension);
  }
  protozero::pbf_writer kind(of_tensor);
  kind.add_int32(1, type);
  kind.add_message(2, shape);
  std::string wrapped;
  protozero::pbf_writer(wrapped).add_message(1, of_tensor);
  protozero::pbf_writer out(bytes);
  out.add_string(1, name);
  out.add_message(2, wrapped);
  return bytes;
}

std::string model_of(const std::vector<std::pair<uint32_t, std::string>>& parts) {
  std::string graph, bytes;
  for (const auto& [number, part] : parts) protozero::pbf_writer(graph).add_message(number, part);
  protozero::pbf_writer out(bytes);
  out.add_int64(1, 8);
  out.add_message(7, graph);
  return bytes;
}

Result<OnnxModel> read_bytes(const std::string& bytes) {
  MemoryFile file(bytes);
  return read_onnx_model(file);
}

TEST(OnnxModel, WeightsAreTheProductOfTheirSizes) {
  const auto model = read_bytes(model_of({{5, tensor("w", kFloat, {1024, 1000})},
                                          {5, tensor("b", kInt8, {1000})},
                                          {5, tensor("q", kInt4, {3, 5}, true)},
                                          {5, tensor("scalar", kFloat, {})},
                                          {11, value("x", kFloat, {-1, 1024})},
                                          {11, value("w", kFloat, {1024, 1000})},
                                          {12, value("y", kFloat, {-1, 1000})}}));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->weight_count, 4u);
  EXPECT_EQ(model->weight_bytes, 4'096'000u + 1000u + 8u + 4u);  // 15 half bytes are 8 bytes
  EXPECT_EQ(model->weight_bytes_by_type.at("float32"), 4'096'004u);
  EXPECT_EQ(model->external_bytes, 8u);
  ASSERT_EQ(model->inputs.size(), 1u);  // "w" is the default of an input
  EXPECT_EQ(model->inputs[0].dimensions[0].name, "batch");
  EXPECT_EQ(model->outputs, std::vector<std::string>{"y"});
}

TEST(OnnxModel, ConstantsOfNodesAndInnerGraphsCount) {
  std::string inner, branch, attribute, constant, node;
  protozero::pbf_writer(inner).add_message(5, tensor("deep", kFloat, {100}));
  protozero::pbf_writer(branch).add_message(6, inner);
  protozero::pbf_writer(constant).add_message(5, tensor("", kFloat, {7}));
  protozero::pbf_writer(node).add_message(5, branch);
  protozero::pbf_writer(node).add_message(5, constant);
  const auto model = read_bytes(model_of({{1, node}}));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->weight_bytes, 428u);
}

TEST(OnnxModel, OpenSizesAreSaid) {
  const auto model = read_bytes(
      model_of({{11, value("x", kFloat, {-1, 16})}, {11, value("mask", kInt8, {-1, -2})}}));
  ASSERT_TRUE(model);
  const auto shapes = resolve_onnx_inputs(*model, 4, {{"mask.1", 9}});
  ASSERT_TRUE(shapes) << shapes.error().message;
  EXPECT_EQ((*shapes)[0].sizes, (std::vector<uint64_t>{4, 16}));
  EXPECT_EQ((*shapes)[0].size_bytes, 4u * 16 * 4);
  EXPECT_EQ((*shapes)[1].size_bytes, 4u * 9);
  EXPECT_EQ((*resolve_onnx_inputs(*model, 4, {{"batch", 2}, {"mask.1", 9}}))[0].size_bytes, 128u);
  EXPECT_NE(resolve_onnx_inputs(*model, 4, {}).error().message.find("--dim mask.1=N"),
            std::string::npos);
  EXPECT_NE(
      resolve_onnx_inputs(*model, 4, {{"mask.1", 9}, {"y", 1}}).error().message.find("no input"),
      std::string::npos);
}

TEST(OnnxModel, SizesThatAreFixedStayWhatTheyAre) {
  const auto model = read_bytes(model_of({{11, value("x", kFloat, {8, 16})}}));
  ASSERT_TRUE(model);
  EXPECT_TRUE(resolve_onnx_inputs(*model, 8, {}));
  EXPECT_NE(resolve_onnx_inputs(*model, 4, {}).error().message.find("exported as 8"),
            std::string::npos);
  const auto text = read_bytes(model_of({{11, value("x", kText, {1})}}));
  EXPECT_EQ(resolve_onnx_inputs(*text, 0, {}).error().code, ErrorCode::kUnsupported);
}

TEST(OnnxModel, WhatIsNoModelIsRefused) {
  EXPECT_FALSE(read_bytes(""));
  EXPECT_FALSE(read_bytes("not a model"));
  const auto huge = read_bytes(model_of({{5, tensor("w", kFloat, {1 << 30, 1 << 30})}}));
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("larger than any machine's memory"), std::string::npos);
  EXPECT_FALSE(read_bytes(model_of({{5, tensor("w", kFloat, {-1})}})));
  std::string graph;  // 64 graphs, one in the other
  for (int depth = 0; depth < 64; ++depth) {
    std::string attribute, node, outer;
    protozero::pbf_writer(attribute).add_message(6, graph);
    protozero::pbf_writer(node).add_message(5, attribute);
    protozero::pbf_writer(outer).add_message(1, node);
    graph = outer;
  }
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(7, graph);
  EXPECT_FALSE(read_bytes(bytes));
}

TEST(OnnxModel, AnyPrefixIsAnErrorInIt) {
  const std::string whole =
      model_of({{5, tensor("w", kFloat, {1024, 1000})}, {11, value("x", kFloat, {-1, 1024})}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto model = read_bytes(whole.substr(0, size));
    ASSERT_FALSE(model) << size;
    EXPECT_LE(model.error().offset.value_or(whole.size() + 1), size);
  }
}

}  // namespace
}  // namespace gpumemprof
