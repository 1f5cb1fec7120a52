#include "estimate/rank_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/size.h"
#include "estimate/closed_form_for_tests.h"

namespace gpumemprof {
namespace {

/// Bytes for each weight, all states together.
double bytes_a_weight(const char* config, const std::vector<SetupOption>& options) {
  const ConfigurationCase read = read_case(config);
  const TrainingSetup setup = setup_of(read, options);
  const RankContents rank = rank_contents(read.shape, setup, 0);
  const StateBytes state = state_bytes(read.shape, setup, rank);
  return (state.weights + state.gradients + state.buckets + state.optimizer) /
         held_by_rank(read.shape, setup, rank).all();
}

// Megatron-LM's own figures: 18 bytes a parameter, 6 + 12 / d with the distributed optimizer over d
// ranks.
TEST(RankBytes, MegatronKeepsEighteenBytesAWeight) {
  EXPECT_DOUBLE_EQ(bytes_a_weight(kPaperGpt, {}), 18);
  EXPECT_DOUBLE_EQ(bytes_a_weight(kPaperGpt, {{"dp", "8"}, {"distributed-optimizer", "true"}}),
                   6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(
      bytes_a_weight(kPaperGpt, {{"dp", "2"}, {"cp", "4"}, {"distributed-optimizer", "true"}}),
      6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(bytes_a_weight(kPaperGpt, {{"precision", "fp32"}}), 16);
}

// DeepSpeed's documentation of mixed precision: 16 bytes; 4 + 12 / d; 2 + 14 / d; 16 / d.
TEST(RankBytes, ZerosStages) {
  const auto zero = [](const char* stage) {
    return bytes_a_weight(kLlama2_7b, {{"precision", "fp16"}, {"dp", "8"}, {"zero", stage}});
  };
  EXPECT_DOUBLE_EQ(zero("1"), 4 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(zero("2"), 2 + 14.0 / 8);
  EXPECT_DOUBLE_EQ(zero("3"), 16.0 / 8);
}

TEST(RankBytes, PlainPyTorchByOptimizerAndPrecision) {
  const auto of = [](const char* optimizer, const char* precision) {
    return bytes_a_weight(kLlama2_7b, {{"optimizer", optimizer}, {"precision", precision}});
  };
  EXPECT_DOUBLE_EQ(of("adamw", "fp32"), 16);
  EXPECT_DOUBLE_EQ(of("adamw", "bf16"), 8);
  EXPECT_DOUBLE_EQ(of("adamw", "amp-bf16"), 16);
  EXPECT_DOUBLE_EQ(of("sgd", "fp32"), 8);
  EXPECT_DOUBLE_EQ(of("momentum", "fp32"), 12);
  EXPECT_DOUBLE_EQ(of("none", "fp32"), 8);
  EXPECT_DOUBLE_EQ(of("adamw8bit", "fp32"), 8 + 2 * (1 + 4.0 / 256));
  EXPECT_LT(of("adafactor", "fp32"), 8.01) << "a row and a column of each matrix";
  EXPECT_GT(of("adafactor", "fp32"), 8);
}

TEST(RankBytes, DistributedDataParallelHasBuckets) {
  EXPECT_DOUBLE_EQ(bytes_a_weight(kLlama2_7b, {{"precision", "fp32"}, {"dp", "2"}}), 20);
}

// GPT-2 has 124,439,808 weights; a large batch makes the loss the largest moment, and the buckets
// of an earlier step are there then, too.
TEST(RankBytes, BucketsAreThereAtTheLoss) {
  std::vector<SetupOption> options = {{"batch", "64"}, {"precision", "bf16"}};
  const Prediction alone = predicted(kGpt2, options);
  EXPECT_GT(share_bytes(alone, Category::kActivation, "logits and loss"), 0u);
  EXPECT_EQ(share_bytes(alone, Category::kGradient), 0u);
  options.emplace_back("dp", "2");
  const Prediction two = predicted(kGpt2, options);
  EXPECT_EQ(two.allocated->expected - alone.allocated->expected, 2u * 124'439'808);
  EXPECT_EQ(share_bytes(two, Category::kGradient, "buckets of DistributedDataParallel"),
            2u * 124'439'808);
}

// Mixtral 8x7B: 46,702,792,704 weights, of them 32 layers of 8 experts of three matrices. With as
// many ranks of experts as of data each expert is on one rank, and nothing is left to split.
TEST(RankBytes, ExpertsOfOneRankAreNotSplitAgain) {
  constexpr double kExperts = 32.0 * 8 * 3 * 4096 * 14336, kDense = 46'702'792'704 - kExperts;
  const auto state = [](const char* zero, const char* expert) {
    const ConfigurationCase read = read_case(kMixtral8x7b);
    const TrainingSetup setup =
        setup_of(read, {{"dp", "8"}, {"ep", expert}, {"zero", zero}, {"sequence", "512"}});
    return state_bytes(read.shape, setup, rank_contents(read.shape, setup, 0));
  };
  StateBytes bytes = state("1", "8");
  EXPECT_DOUBLE_EQ(bytes.weights, 2 * (kDense + kExperts / 8));
  EXPECT_DOUBLE_EQ(bytes.optimizer, 12 * (kDense / 8 + kExperts / 8));
  bytes = state("3", "8");
  EXPECT_DOUBLE_EQ(bytes.weights, 2 * (kDense / 8 + kExperts / 8));
  EXPECT_DOUBLE_EQ(bytes.gradients, 2 * (kDense / 8 + kExperts / 8));
  // Of two ranks of experts each expert is on four: 2 * 4 ranks share all of them.
  bytes = state("3", "2");
  EXPECT_DOUBLE_EQ(bytes.weights, 2 * (kDense / 8 + kExperts / 2 / 4));
  // No replicas: DistributedDataParallel has no bucket for them.
  EXPECT_DOUBLE_EQ(state("0", "8").buckets, 2 * kDense);
}

TEST(ClosedForm, WhatFsdpKeepsInFp32IsSaid) {
  const Prediction p = predicted(kLlama2_7b, {{"dp", "8"}, {"fsdp", "true"}});
  EXPECT_TRUE(std::ranges::any_of(p.assumptions, [](const Assumption& assumption) {
    return assumption.what.starts_with("FSDP's shards of weights and gradients");
  }));
  EXPECT_EQ(share_bytes(p, Category::kParameter, "weights"), 4 * 6'738'415'616u / 8);
}

uint64_t in_flight(const std::vector<SetupOption>& options, uint64_t stage) {
  const ConfigurationCase read = read_case(kPaperGpt);
  return rank_contents(read.shape, setup_of(read, options), stage).in_flight;
}

TEST(RankBytes, MicroBatchesInFlight) {
  // 1F1B: a rank has as many as there are ranks behind it, and its own.
  const std::vector<SetupOption> plain = {{"pp", "4"}, {"micro-batches", "8"}};
  EXPECT_EQ(in_flight(plain, 0), 4u);
  EXPECT_EQ(in_flight(plain, 3), 1u);
  EXPECT_EQ(in_flight({{"pp", "4"}, {"micro-batches", "2"}}, 0), 2u);
  // Interleaved, 3 chunks: warm-up is 2 (p - r - 1) + (v - 1) p, and the one that is computed.
  const std::vector<SetupOption> chunks = {{"pp", "4"}, {"vpp", "3"}, {"micro-batches", "8"}};
  EXPECT_EQ(in_flight(chunks, 0), 6u + 8 + 1);
  EXPECT_EQ(in_flight(chunks, 3), 8u + 1);
  EXPECT_EQ(in_flight({{"pp", "4"}, {"vpp", "3"}, {"micro-batches", "2"}}, 0), 6u);
}

uint64_t cache(const char* config, const std::vector<SetupOption>& more) {
  std::vector<SetupOption> options = {{"inference", "true"}};
  options.insert(options.end(), more.begin(), more.end());
  return share_bytes(predicted(config, options), Category::kKvCache);
}

TEST(KvCache, BytesATokenAsTheModelsAuthorsSay) {
  // Llama 2 7B: half a MiB a token; Llama 3 8B, eight groups: 128 KiB; DeepSeek-V3, compressed:
  // 70,272 bytes.
  EXPECT_EQ(cache(kLlama2_7b, {{"context", "4096"}}), 2048u * 1024 * 1024);
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "1"}}), 128u * 1024);
  EXPECT_EQ(cache(kDeepSeekV3, {{"context", "1"}}), 70272u);
}

TEST(KvCache, TypeBatchRanksPagesAndWindow) {
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "1"}, {"kv-dtype", "fp8"}}), 64u * 1024);
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "1"}, {"batch", "3"}}), 3 * 128u * 1024);
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "1"}, {"tp", "4"}}), 32u * 1024);
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "1"}, {"tp", "32"}}), 16u * 1024)
      << "ranks share the eight heads";
  EXPECT_EQ(cache(kDeepSeekV3, {{"context", "1"}, {"tp", "8"}}), 70272u)
      << "every rank has all of it";
  EXPECT_EQ(cache(kLlama3_8b, {{"context", "17"}, {"page", "16"}}), 32u * 128 * 1024);
  EXPECT_EQ(cache(kMistral7b, {{"context", "32768"}}), 4096u * 128 * 1024) << "a window of 4096";
}

TEST(RankBytes, WeightsOfInferenceAreTheParametersAlone) {
  const Prediction prediction =
      predicted(kLlama2_7b, {{"inference", "true"}, {"precision", "fp16"}});
  EXPECT_EQ(share_bytes(prediction, Category::kParameter), 2 * 6'738'415'616u);
  EXPECT_EQ(share_bytes(prediction, Category::kGradient) +
                share_bytes(prediction, Category::kOptimizerState),
            0u);
}

/// As Qwen2-0.5B, with windows of 4096 tokens switched on; `more` are further members.
std::string qwen(const std::string& family, const std::string& more) {
  return R"({"model_type": ")" + family +
         R"(", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14,
        "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 4864, "vocab_size": 151936,
        "max_position_embeddings": 32768, "use_sliding_window": true, "sliding_window": 4096)" +
         more + "}";
}

// 512 bytes a token and layer: keys and values, two heads of 64, two bytes.
TEST(KvCache, LayersOfQwenBelowTheBoundarySeeAll) {
  constexpr uint64_t kFull = 32768 * 512, kWindow = 4096 * 512;
  const auto of = [](const std::string& family, const std::string& more) {
    return cache(qwen(family, more).c_str(), {{"context", "32768"}});
  };
  for (const char* family : {"qwen2", "qwen3"}) {
    EXPECT_EQ(of(family, R"(, "max_window_layers": 24)"), 402'653'184u);
    EXPECT_EQ(of(family, R"(, "max_window_layers": 20)"), 20 * kFull + 4 * kWindow);
    EXPECT_EQ(of(family, R"(, "max_window_layers": 0)"), 24 * kWindow);
    EXPECT_EQ(of(family, ""), 24 * kFull) << "the boundary is 28 by default";
    std::string types;
    for (int i = 0; i < 24; ++i)
      types += i < 3 ? R"("sliding_attention",)" : R"("full_attention",)";
    types.pop_back();
    EXPECT_EQ(of(family, R"(, "max_window_layers": 0, "layer_types": [)" + types + "]"),
              21 * kFull + 3 * kWindow);
  }
  EXPECT_EQ(
      read_configuration(qwen("qwen2", R"(, "layer_types": ["full_attention"])")).error().message,
      "layer_types has 1 entries for 24 layers");
}

TEST(KvCache, HeadsOfKeysMustDivideTheHeads) {
  std::string text = kLlama3_8b;
  text.replace(text.find("\"num_key_value_heads\": 8"), 24, "\"num_key_value_heads\": 3");
  const auto read = read_configuration(text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "num_key_value_heads: 3 does not divide the 32 heads");
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
}

/// Llama 3 8B as it was trained further, for 131072 tokens.
constexpr const char* kLongLlama =
    R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "max_position_embeddings": 131072, "torch_dtype": "bfloat16"})";

uint64_t layer_in_use(const std::vector<SetupOption>& options) {
  return share_bytes(predicted(kLongLlama, options), Category::kActivation, "the layer in use");
}

// Input and residual of 4096, and the three of 14336 in the MLP, of two bytes: 102,400 a token.
TEST(Inference, ThePromptIsTheContextUnlessTheUserSaysAnother) {
  constexpr uint64_t kToken = 2 * (2 * 4096 + 3 * 14336);
  EXPECT_EQ(layer_in_use({{"inference", "true"}, {"context", "4096"}}), 4096 * kToken);
  EXPECT_EQ(layer_in_use({{"inference", "true"}, {"context", "4096"}, {"sequence", "512"}}),
            512 * kToken);
  EXPECT_EQ(layer_in_use({{"inference", "true"}, {"sequence", "512"}}), 512 * kToken);
  EXPECT_EQ(layer_in_use({{"inference", "true"}}), 131072 * kToken);
  const auto says = [](const std::vector<SetupOption>& options, std::string_view text) {
    for (const Assumption& assumption : predicted(kLongLlama, options).assumptions) {
      if (assumption.what.starts_with(text)) return true;
    }
    return false;
  };
  EXPECT_TRUE(says({{"inference", "true"}, {"context", "4096"}},
                   "a prompt as long as the context, 4096 tokens, is computed at once"));
  EXPECT_TRUE(says({{"inference", "true"}, {"context", "4096"}, {"sequence", "512"}},
                   "a prompt of 512 tokens is computed at once"));
}

TEST(ClosedForm, SharesAddUpToWhatIsAllocated) {
  for (const char* config : {kLlama3_8b, kMixtral8x7b, kGpt2, kDeepSeekV3, kPaperGpt}) {
    for (const char* inference : {"false", "true"}) {
      const Prediction p = predicted(config, {{"inference", inference}, {"sequence", "512"}});
      uint64_t sum = 0;
      for (const PredictedShare& share : p.at_peak) sum += share.bytes;
      ASSERT_TRUE(p.allocated && p.reserved && p.device);
      EXPECT_EQ(sum, p.allocated->expected);
      EXPECT_LT(p.allocated->low, p.allocated->expected);
      EXPECT_GT(p.allocated->high, p.allocated->expected);
      EXPECT_LE(p.allocated->expected, p.reserved->expected);
      EXPECT_LT(p.reserved->expected, p.device->expected);
      EXPECT_FALSE(p.live);
      EXPECT_FALSE(p.unknown.empty());
      for (const Assumption& assumption : p.assumptions)
        EXPECT_FALSE(assumption.source.empty()) << assumption.what;
    }
  }
}

// The last of four ranks with three chunks each: nine chunks of a layer in flight, and the logits
// in bf16 and fp32.
TEST(ClosedForm, TheTermsOfOneStageByHand) {
  const Prediction p = predicted(kPaperGpt, {{"pp", "4"},
                                             {"vpp", "3"},
                                             {"micro-batches", "4"},
                                             {"stage", "last"},
                                             {"workspace", "68MiB"}});
  const double sbh = 4096.0 * 512;
  EXPECT_EQ(share_bytes(p, Category::kActivation, "attention scores"),
            9 * 5 * 4 * 8 * 1024.0 * 1024);
  EXPECT_EQ(share_bytes(p, Category::kActivation, "logits and loss"), 6 * 4096.0 * 50304);
  EXPECT_EQ(share_bytes(p, Category::kActivation, "dropout masks"), 9 * 2 * sbh);
  EXPECT_EQ(share_bytes(p, Category::kWorkspace), 68 * kMiB);
}

TEST(ClosedForm, WhatAddsUpToMoreThanAnyMachineIsRefused) {
  const ConfigurationCase read = read_case(kLlama3_8b);
  TrainingSetup setup = setup_of(read, {});
  setup.sequence = 1u << 27;
  setup.batch = 1u << 27;
  setup.attention = AttentionKernel::kUnfused;
  auto prediction = predict_closed_form(read.shape, setup);
  ASSERT_FALSE(prediction);
  EXPECT_EQ(prediction.error().message, "the sum exceeds any machine's memory");
}

std::string setup_error(const char* config, const std::vector<SetupOption>& options) {
  const ConfigurationCase read = read_case(config);
  auto setup = training_setup(read.values, read.shape, options);
  return setup ? "" : setup.error().message;
}

TEST(TrainingSetup, WhatMakesNoSenseIsSaid) {
  EXPECT_EQ(setup_error(kGpt2, {{"tp", "5"}}), "tp does not divide the 12 heads");
  EXPECT_EQ(setup_error(kGpt2, {{"pp", "13"}}), "there are more stages than layers");
  EXPECT_EQ(setup_error(kGpt2, {{"ep", "2"}}), "ep needs a model with experts; this one has none");
  EXPECT_EQ(setup_error(kMixtral8x7b, {{"ep", "3"}}), "ep does not divide the experts");
  EXPECT_EQ(setup_error(kGpt2, {{"cp", "3"}}), "cp does not divide the sequence");
  EXPECT_EQ(setup_error(kGpt2, {{"zero", "4"}}), "zero is a number from 0 to 3");
  EXPECT_EQ(setup_error(kGpt2, {{"dp", "2"}, {"distributed-optimizer", "true"}}),
            "distributed-optimizer is Megatron's option; use --zero 1");
  EXPECT_EQ(setup_error(kGpt2, {{"inference", "true"}, {"context", "8"}, {"sequence", "9"}}),
            "a prompt of 9 tokens (sequence) is longer than the context of 8");
  EXPECT_EQ(setup_error(kGpt2, {{"batch", "-1"}}), "batch is a number from 1 to 134217728");
  EXPECT_EQ(setup_error(kGpt2, {{"batch", "0"}}), "batch is a number from 1 to 134217728");
  EXPECT_EQ(setup_error(kGpt2, {{"precision", "fp4"}}),
            "precision is one of fp32, tf32, bf16, fp16, amp-bf16, amp-fp16");
  EXPECT_EQ(setup_error(kGpt2, {{"fsdp", "maybe"}}), "fsdp is true or false");
  EXPECT_TRUE(setup_error(kGpt2, {{"speed", "9"}})
                  .starts_with("unknown setting speed; known are batch,"));
}

}  // namespace
}  // namespace gpumemprof
