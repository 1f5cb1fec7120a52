#include "estimate/config_values.h"

#include <gtest/gtest.h>

#include "estimate/closed_form.h"

namespace gpumemprof {
namespace {

Error error_of(std::string_view text) {
  auto values = parse_config(text);
  return values ? Error{ErrorCode::kSystem, "no error", std::nullopt} : values.error();
}

std::string refusal(std::string_view text) {
  auto read = read_configuration(text);
  return read ? "" : read.error().message;
}

TEST(ConfigValues, JsonAndYamlAndArgumentsGiveTheSameNames) {
  for (const char* text :
       {R"({"num-layers": 12, "bf16": true, "tokenizer_type": "x", "freq": [0, 1]})",
        "num_layers: 12\nbf16: true\ntokenizer_type: x\nfreq: [0, 1]\n",
        "ENV_VARS:\n  num_layers: 7\nMODEL_ARGS:\n  --num-layers: 12\n  --bf16: true\n"
        "  --tokenizer-type: x\n  --freq: [0, 1]\nTEST_TYPE: regular\n"}) {
    auto values = parse_config(text);
    ASSERT_TRUE(values) << text;
    EXPECT_EQ(values->count("num_layers", 0, 1, 100), 12u) << text;
    EXPECT_TRUE(values->flag("bf16", false));
    EXPECT_EQ(values->text("tokenizer_type"), "x");
    ASSERT_TRUE(values->list("freq")) << text;
    EXPECT_EQ(*values->list("freq"), (ConfigList{0, 1}));
    EXPECT_FALSE(values->has("test_type"));
  }
}

TEST(ConfigValues, DeeperObjectsAreNotMixedIn) {
  auto values =
      parse_config(R"({"rope": {"factor": 2, "n": [1]}, "n": null, "architectures": ["A", "B"]})");
  ASSERT_TRUE(values);
  EXPECT_FALSE(values->has("factor"));
  EXPECT_FALSE(values->has("n"));
  EXPECT_TRUE(values->is_null("n"));
  EXPECT_EQ(values->text("architectures_0"), "A");
}

TEST(ConfigValues, AnErrorNamesTheByte) {
  const Error broken = error_of(R"({"a": 1, "b" 2})");
  EXPECT_EQ(broken.code, ErrorCode::kBadInput);
  EXPECT_EQ(broken.offset, 13u);
  EXPECT_EQ(error_of("").offset, 0u);
  EXPECT_EQ(error_of("a: *b\n").offset, 3u);
  // The parser counts characters, the message says bytes.
  EXPECT_EQ(error_of("\xc3\xa4: *b\n").offset, 4u);
  EXPECT_EQ(error_of("just words").message,
            "is not a configuration: neither a JSON object nor a YAML mapping");
  EXPECT_EQ(error_of("[1, 2]").message,
            "is not a configuration: neither a JSON object nor a YAML mapping");
}

TEST(ConfigValues, WhatIsTooDeepOrTooLargeIsRefused) {
  const std::string deep = "{\"a\": " + std::string(100000, '[');
  EXPECT_EQ(error_of(deep).message, "is nested too deeply");
  EXPECT_EQ(error_of("a: " + std::string(200, '[')).message, "is nested too deeply");
  EXPECT_EQ(error_of("{\"a\": \"" + std::string(kMaxConfigBytes, 'x') + "\"}").message,
            "is too large for a configuration");
}

TEST(ConfigValues, ValuesOfTheWrongKindAreNamed) {
  auto values = parse_config(R"({"a": "x", "b": 1.5, "c": -1, "d": 1e300, "e": 2})");
  ASSERT_TRUE(values);
  EXPECT_EQ(values->count("a", 0, 0, 9).error().message, "a is not a whole number");
  EXPECT_EQ(values->count("b", 0, 0, 9).error().message, "b is not a whole number");
  EXPECT_EQ(values->count("c", 0, 0, 9).error().message, "c is out of range: 0 to 9");
  EXPECT_EQ(values->count("d", 0, 0, 9).error().message, "d is out of range: 0 to 9");
  EXPECT_EQ(values->share("e", 0).error().message, "e is not a number from 0 to 1");
  EXPECT_EQ(values->count("missing", 5, 0, 9), 5u);
}

TEST(ModelConfig, WhatIsNotKnownIsSaidInOneSentence) {
  EXPECT_EQ(refusal("{}"),
            "is not a known configuration: neither Hugging Face's (no model_type) nor Megatron's "
            "(no num-layers and hidden-size)");
  EXPECT_TRUE(refusal(R"({"model_type": "resnet"})")
                  .starts_with("model_type \"resnet\" is not supported: use llama,"));
  EXPECT_TRUE(
      refusal("{\"model_type\": \"res\\nnet\"}").starts_with("model_type \"res?net\" is not"));
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"), "has no num_hidden_layers");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "num_hidden_layers": 1e9})"),
            "num_hidden_layers is out of range: 1 to 4096");
  EXPECT_EQ(refusal("num-layers: 2\nhidden-size: 8\nnum-attention-heads: 2\n"),
            "has no vocabulary size: add vocab-size");
}

TEST(ModelConfig, ValuesThatAreEachInBoundsAreRefusedTogether) {
  EXPECT_EQ(refusal(R"({"model_type": "mixtral", "num_hidden_layers": 4096, "hidden_size": 1048576,
                        "num_attention_heads": 1, "intermediate_size": 1048576, "vocab_size": 100,
                        "num_local_experts": 65536})"),
            "describes a model of more than 10^15 parameters");
}

TEST(ModelConfig, MegatronsGroupsDivideTheHeads) {
  const auto read = read_configuration(
      "num-layers: 2\nhidden-size: 64\nnum-attention-heads: 8\nvocab-size: 100\n"
      "group-query-attention: true\nnum-query-groups: 3\n");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "num_query_groups: 3 does not divide the 8 heads");
}

TEST(ModelConfig, MegatronsPatternOfExpertLayers) {
  const std::string start =
      "num-layers: 4\nhidden-size: 8\nnum-attention-heads: 2\nvocab-size: 8\nnum-experts: 2\n";
  auto read = read_configuration(start + "moe-layer-freq: ([0]*1+[1]*3)\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->shape.experts.in_layer, (std::vector<bool>{false, true, true, true}));
  read = read_configuration(start + "moe-layer-freq: 2\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->shape.experts.in_layer, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(refusal(start + "moe-layer-freq: ([0]*99999999+[1])\n"),
            "moe_layer_freq does not name every layer");
}

}  // namespace
}  // namespace gpumemprof
