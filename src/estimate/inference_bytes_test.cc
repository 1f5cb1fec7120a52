// What is served: quantized weights, encoders, lengths and options that a run cannot have.
#include <gmock/gmock.h>

#include <algorithm>

#include "estimate/closed_form_for_tests.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;
using testing::Not;

// Of Llama 3 8B: 4096² for queries and output each, a quarter of it for keys and values each, three
// matrices of the MLP, in 32 layers; two tables of the vocabulary and 65 norms are not quantized.
constexpr double kLlamaMatrices = 32 * (2.5 * 4096 * 4096 + 3.0 * 4096 * 14336);
constexpr double kLlamaRest = 2.0 * 128256 * 4096 + 65 * 4096;

std::string with_quantization(std::string_view config, const std::string& quantization) {
  std::string out(config);
  return out.insert(out.rfind('}'), R"(, "quantization_config": {)" + quantization + "}");
}

double weights(const std::string& config) {
  return static_cast<double>(
      share_bytes(predicted(config, {{"inference", "true"}}), Category::kParameter));
}

std::string refused(std::string_view config, const std::vector<SetupOption>& options) {
  const ConfigurationCase read = read_case(config);
  auto setup = training_setup(read.values, read.shape, options);
  return setup ? "" : setup.error().message;
}

TEST(QuantizedWeights, BitsAsTheMethodsKernelsStoreThem) {
  const auto of = [](const char* quantization) {
    return (weights(with_quantization(kLlama3_8b, quantization)) - 2 * kLlamaRest) * 8 /
           kLlamaMatrices;
  };
  // A scale of 16 bits and a zero point of 4 for 128 weights.
  EXPECT_NEAR(of(R"("quant_method": "gptq", "bits": 4, "group_size": 128)"), 4 + 20.0 / 128, 1e-6);
  EXPECT_NEAR(of(R"("quant_method": "awq", "bits": 4, "group_size": 64)"), 4 + 20.0 / 64, 1e-6);
  EXPECT_NEAR(of(R"("quant_method": "gptq", "bits": 8, "group_size": -1)"), 8, 1e-6);
  EXPECT_NEAR(of(R"("quant_method": "bitsandbytes", "load_in_8bit": true)"), 8, 1e-6);
  // A scale of 32 bits for 64 weights; doubly quantized 8 bits, and 32 for 256 of those.
  EXPECT_NEAR(of(R"("quant_method": "bitsandbytes", "load_in_4bit": true)"), 4.5, 1e-6);
  EXPECT_NEAR(of(R"("quant_method": "bitsandbytes", "load_in_4bit": true,
                    "bnb_4bit_use_double_quant": true)"),
              4 + (8 + 32.0 / 256) / 64, 1e-6);
  EXPECT_NEAR(of(R"("quant_method": "fp8", "weight_block_size": [128, 128])"),
              8 + 32.0 / 128 / 128, 1e-6);
}

// The published file of Llama 3 8B by GPTQ in 4 bits has 5.7 GB, DeepSeek-V3 has 671 B weights.
TEST(QuantizedWeights, AddUpToPublishedFiles) {
  EXPECT_NEAR(weights(with_quantization(kLlama3_8b, R"("quant_method": "gptq", "bits": 4)")) / 1e9,
              5.7, 0.05);
  EXPECT_NEAR(weights(with_quantization(kDeepSeekV3, R"("quant_method": "fp8")")) / 1e9, 671, 5);
}

TEST(QuantizedWeights, AnUnknownMethodIsRefused) {
  auto read = read_configuration(with_quantization(kLlama3_8b, R"("quant_method": "magic")"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("quant_method \"magic\", which is not supported"));
}

TEST(QuantizedWeights, AreNotTrained) {
  const std::string config = with_quantization(kLlama3_8b, R"("quant_method": "fp8")");
  const Prediction quantized = predicted(config, {}), plain = predicted(kLlama3_8b, {});
  EXPECT_EQ(quantized.allocated->expected, plain.allocated->expected);
  EXPECT_TRUE(std::ranges::any_of(quantized.assumptions, [](const Assumption& one) {
    return one.what == "quantization_config (fp8) is left out: weights are trained in bf16";
  }));
}

TEST(InferenceBytes, NoLessThanWeightsAndCache) {
  const Prediction p = predicted(kMixtral8x7b, {{"inference", "true"}, {"context", "4096"}});
  EXPECT_EQ(p.allocated->low, share_bytes(p, Category::kParameter) + (4096u << 17));
  EXPECT_EQ(p.reserved->low, p.allocated->low);
}

TEST(InferenceBytes, AnEncoderCachesNothing) {
  constexpr const char* kBert =
      R"({"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
          "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
          "architectures": ["BertForMaskedLM"]})";
  const Prediction p = predicted(kBert, {{"inference", "true"}, {"sequence", "100"}});
  EXPECT_EQ(share_bytes(p, Category::kKvCache), 0u);
  EXPECT_EQ(share_bytes(p, Category::kActivation, "logits"), 100u * 30522 * 2) << "of every token";
  EXPECT_EQ(refused(kBert, {{"inference", "true"}, {"context", "128"}}),
            "context is of the KV cache, and this model has none");
}

// Transformers 5.23 refuses sdpa for it, as it caps scores.
constexpr const char* kGemma2_2b =
    R"({"model_type": "gemma2", "num_hidden_layers": 26, "hidden_size": 2304, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000,
        "max_position_embeddings": 8192, "torch_dtype": "bfloat16"})";

TEST(InferenceBytes, ScoresOfAttentionByOperators) {
  const Prediction p = predicted(kGemma2_2b, {{"inference", "true"}, {"context", "1000"}});
  EXPECT_EQ(share_bytes(p, Category::kActivation, "attention scores"),
            8u * 1000 * 1000 * (2 + 4 + 2));
  const Prediction flash = predicted(
      kGemma2_2b, {{"inference", "true"}, {"context", "1000"}, {"attention", "flash"}});
  EXPECT_EQ(share_bytes(flash, Category::kActivation, "attention scores"), 0u);
}

TEST(TrainingSetup, AttentionByOperatorsWhereTransformersHasNoKernel) {
  const auto of = [](const char* config) { return setup_of(read_case(config), {}).attention; };
  EXPECT_EQ(of(kGemma2_2b), AttentionKernel::kUnfused);
  EXPECT_EQ(of(kLlama3_8b), AttentionKernel::kFlash);
}

TEST(ModelHeads, AClassifierHasNoOutputLayer) {
  const auto weights_of = [](const char* kind) {
    std::string config(kLlama3_8b);
    config.insert(config.rfind('}'), std::string(R"(, "architectures": [")") + kind + "\"]");
    return weights(config);
  };
  const double table = 128256 * 4096 * 2.0;
  EXPECT_EQ(weights_of("LlamaForCausalLM") - weights_of("LlamaModel"), table);
  EXPECT_EQ(weights_of("LlamaForSequenceClassification") - weights_of("LlamaModel"), 2 * 4096 * 2);
}

// 8 GPUs hold the whole model between them, however its parts are spread.
TEST(ExpertParallelism, RanksHoldTheModelBetweenThem) {
  const auto of = [](const std::vector<SetupOption>& more) {
    std::vector<SetupOption> options = {{"inference", "true"}, {"context", "1"}};
    options.insert(options.end(), more.begin(), more.end());
    const Prediction p = predicted(kMixtral8x7b, options);
    return static_cast<double>(share_bytes(p, Category::kParameter));
  };
  // Three matrices of 4096 x 14336 an expert, 8 in each of 32 layers, in two bytes.
  const double whole = of({}), experts = 2.0 * 32 * 8 * 3 * 4096 * 14336;
  EXPECT_NEAR(of({{"tp", "8"}}), whole / 8, whole / 1000);
  EXPECT_NEAR(of({{"tp", "8"}, {"ep", "8"}}), whole / 8, whole / 1000) << "on the same ranks";
  EXPECT_NEAR(of({{"ep", "8"}}), whole - experts * 7 / 8, 1);
  EXPECT_NEAR(of({{"tp", "8"}, {"ep", "8"}, {"etp", "8"}}), (whole - experts) / 8 + experts / 64,
              whole / 1000);
}

TEST(ExpertParallelism, NamesTheGpusOfALayout) {
  const auto words = [](const std::vector<SetupOption>& options) {
    return setup_words(setup_of(read_case(kMixtral8x7b), options));
  };
  EXPECT_THAT(words({{"tp", "8"}, {"ep", "8"}}), HasSubstr("tp 8, ep 8 on 8 GPUs"));
  EXPECT_THAT(words({{"tp", "2"}, {"ep", "8"}}), HasSubstr("on 8 GPUs"));
  EXPECT_THAT(words({{"tp", "2"}, {"pp", "4"}}), HasSubstr("on 8 GPUs"));
  EXPECT_THAT(words({}), Not(HasSubstr("GPU")));
  EXPECT_THAT(refused(kMixtral8x7b, {{"dp", "3"}, {"ep", "8"}}), HasSubstr("no one layout"));
}

// MistralConfig's default is 4096 tokens; null switches the window off.
TEST(SlidingWindow, OfMistralWhereTheConfigurationIsSilent) {
  std::string silent(kMistral7b), off(kMistral7b);
  const std::string key = "\"sliding_window\": 4096,";
  silent.erase(silent.find(key), key.size());
  off.replace(off.find(key), key.size(), "\"sliding_window\": null,");
  const auto cached = [](const std::string& config) {
    return share_bytes(predicted(config, {{"inference", "true"}, {"context", "32768"}}),
                       Category::kKvCache);
  };
  EXPECT_EQ(cached(silent), 4096ull << 17);
  EXPECT_EQ(cached(off), 32768ull << 17);
}

TEST(LayerTypes, AreReadWhereNoLayerHasAWindow) {
  const auto error_of = [](const std::string& types) {
    std::string config(kLlama3_8b);
    config.insert(config.rfind('}'), R"(, "layer_types": [)" + types + "]");
    auto read = read_configuration(config);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error_of("\"full_attention\""), "layer_types has 1 entries for 32 layers");
  std::string linear = "\"linear_attention\"";
  for (int i = 1; i < 32; ++i) linear += ", \"full_attention\"";
  EXPECT_THAT(error_of(linear), HasSubstr("\"linear_attention\", which is unknown"));
}

TEST(InferenceBytes, NoMoreTokensThanLearnedPositions) {
  EXPECT_EQ(refused(kGpt2, {{"sequence", "1024"}}), "");
  EXPECT_EQ(refused(kGpt2, {{"sequence", "1025"}}),
            "the model has a table of 1024 positions: 1025 tokens cannot be run");
  EXPECT_THAT(refused(kGpt2, {{"inference", "true"}, {"context", "4096"}}),
              HasSubstr("4096 tokens cannot be run"));
}

TEST(TrainingSetup, AnOptionWithoutEffectIsRefused) {
  EXPECT_THAT(refused(kLlama3_8b, {{"context", "4096"}}), HasSubstr("give it with --inference"));
  EXPECT_THAT(refused(kLlama3_8b, {{"kv-dtype", "fp8"}}), HasSubstr("give it with --inference"));
  for (const char* name : {"optimizer", "checkpointing"}) {
    const char* value = name[0] == 'o' ? "sgd" : "full";
    EXPECT_THAT(refused(kLlama3_8b, {{"inference", "true"}, {name, value}}),
                HasSubstr("give it without --inference"));
  }
  EXPECT_THAT(refused(kLlama3_8b, {{"zero", "3"}}), HasSubstr("give --dp"));
  EXPECT_THAT(refused(kLlama3_8b, {{"zero", "2"}, {"fsdp", "true"}, {"dp", "8"}}),
              HasSubstr("give one"));
  EXPECT_EQ(refused(kLlama3_8b, {{"zero", "0"}}), "");
}

}  // namespace
}  // namespace gpumemprof
