#include "estimate/activations.h"

#include <gtest/gtest.h>

#include "estimate/closed_form_for_tests.h"

namespace gpumemprof {
namespace {

// "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), equations 1,
// 2 and 4: bytes a layer of s tokens, b sequences, h wide, with a heads, over t ranks.
constexpr double s = 1024, b = 4, h = 512, a = 8;
// The paper leaves out each norm's mean and deviation: 8 bytes a token.
constexpr double kNormStatistics = 2 * 8 * s * b;

double kept(const std::vector<SetupOption>& options) {
  const ConfigurationCase read = read_case(kPaperGpt);
  return sum_of(kept_by_layer(read.shape, setup_of(read, options), 0, LayerStack::kOnly));
}

TEST(Activations, ALayerIsThePapersEquation) {
  EXPECT_EQ(kept({}), s * b * h * (34 + 5 * a * s / h) + kNormStatistics);
}

TEST(Activations, TensorParallelismLeavesTenWhole) {
  const double t = 4;
  EXPECT_EQ(kept({{"tp", "4"}}), s * b * h * (10 + 24 / t + 5 * a * s / (h * t)) + kNormStatistics);
}

TEST(Activations, SequenceParallelismDividesAll) {
  const double t = 4;
  EXPECT_EQ(kept({{"tp", "4"}, {"sequence-parallel", "true"}}),
            s * b * h / t * (34 + 5 * a * s / h) + kNormStatistics / t);
}

TEST(Activations, SelectiveRecomputationDropsTheScores) {
  EXPECT_EQ(kept({{"checkpointing", "selective"}}), s * b * h * 34 + kNormStatistics);
}

/// Of the paper's layer, its scores apart: 34 s b h, of which the norms' outputs are 4 and the
/// MLP 16.
double kept_with_modules(const char* modules) {
  const ConfigurationCase read =
      read_case(std::string(kPaperGpt) + "recompute-granularity: selective\nrecompute-modules: \"" +
                modules + "\"\n");
  return sum_of(kept_by_layer(read.shape, setup_of(read, {}), 0, LayerStack::kOnly));
}

TEST(Activations, ModulesSayWhatIsComputedAgain) {
  const double scores = s * b * h * 5 * a * s / h;
  EXPECT_EQ(kept_with_modules("core_attn"), s * b * h * 34 + kNormStatistics);
  EXPECT_EQ(kept_with_modules("[layernorm mlp]"),
            s * b * h * (34 - 4 - 16) + scores + kNormStatistics);
  EXPECT_EQ(kept_with_modules("core_attn,mlp"), s * b * h * (34 - 16) + kNormStatistics);
  // There are no experts and no latent attention.
  EXPECT_EQ(kept_with_modules("[moe_act moe shared_experts mla_up_proj]"),
            s * b * h * 34 + scores + kNormStatistics);
  const auto wrong = read_configuration(std::string(kPaperGpt) + "recompute-modules: attn\n");
  ASSERT_TRUE(wrong);
  const auto setup = training_setup(wrong->values, wrong->shape, {});
  ASSERT_FALSE(setup);
  EXPECT_NE(setup.error().message.find("there is no attn"), std::string::npos);
}

TEST(Activations, ExpertsOfWhichTheActivationIsMadeAgainKeepAThirdLess) {
  const std::string experts =
      "num-experts: 4\nmoe-router-topk: 2\nswiglu: true\nmoe-ffn-hidden-size: 1024\n";
  const auto expert_bytes = [&](const std::string& more) {
    const ConfigurationCase read = read_case(kPaperGpt + experts + more);
    double sum = 0;
    for (const KeptTerm& term :
         kept_by_layer(read.shape, setup_of(read, {}), 0, LayerStack::kOnly)) {
      if (std::string_view(term.name) == "experts") sum += term.bytes;
    }
    return sum;
  };
  const double routed = 2 * s * b;
  const double sent = routed * h * 2 * 2;
  EXPECT_EQ(expert_bytes(""), sent + routed * 1024 * 2 * 3);
  const std::string selective = "recompute-granularity: selective\nrecompute-modules: ";
  EXPECT_EQ(expert_bytes(selective + "moe_act\n"), sent + routed * 1024 * 2 * 2);
  EXPECT_EQ(expert_bytes(selective + "moe\n"), 0);
}

TEST(Activations, FullRecomputationKeepsTheInput) {
  const ConfigurationCase read = read_case(kPaperGpt);
  const TrainingSetup setup = setup_of(read, {{"checkpointing", "full"}});
  EXPECT_EQ(sum_of(kept_with_recompute(read.shape, setup, 0, LayerStack::kOnly)), s * b * h * 2);
}

TEST(Activations, AFlashKernelKeepsARowsSumAndItsOutputInTwoLayouts) {
  EXPECT_EQ(kept({{"attention", "flash"}}), s * b * (h * 34 + 2 * h + 4 * a) + kNormStatistics);
}

TEST(Activations, ContextParallelismDividesTheTokens) {
  EXPECT_EQ(kept({{"attention", "flash"}, {"cp", "4"}}), kept({{"attention", "flash"}}) / 4);
}

/// Llama in Transformers, bf16, by its operators: two norms (fp32 input, normalised, output), q, k,
/// v and the output of attention with its row sums, and four halves of the gated MLP.
TEST(Activations, ALayerOfLlama) {
  const ConfigurationCase read = read_case(kLlama3_8b);
  const TrainingSetup setup = setup_of(read, {{"sequence", "2048"}, {"batch", "2"}});
  const double tokens = 4096, width = 4096, ffn = 14336, kv = 1024;
  const double expected =
      tokens * (2 * width * (4 + 2 + 2) + 2 * (2 * width + 2 * kv) + 4 * 32 + 4 * ffn * 2);
  EXPECT_EQ(sum_of(kept_by_layer(read.shape, setup, 0, LayerStack::kOnly)), expected);
}

TEST(Activations, ExpertsTakeEveryTokenSoManyTimes) {
  const ConfigurationCase read = read_case(kMixtral8x7b);
  const auto experts = [&](const std::vector<SetupOption>& options) {
    double sum = 0;
    for (const KeptTerm& term :
         kept_by_layer(read.shape, setup_of(read, options), 0, LayerStack::kOnly)) {
      if (std::string_view(term.name) == "experts") sum += term.bytes;
    }
    return sum;
  };
  const double routed = 2 * 1024;  // two experts a token
  EXPECT_EQ(experts({{"sequence", "1024"}}), routed * 2 * (2 * 4096 + 4 * 14336));
  EXPECT_EQ(experts({{"sequence", "1024"}, {"capacity-factor", "1.5"}}),
            1.5 * experts({{"sequence", "1024"}}));
}

// PyTorch's own MemTracker says 16 bytes a logit in fp32 and 14 in bf16 for this loss
// (tests/estimate_config asks it).
TEST(Activations, LogitsAtTheirWorst) {
  const auto logits = [](const char* config, const std::vector<SetupOption>& options) {
    const ConfigurationCase read = read_case(config);
    for (const KeptTerm& term : kept_by_output(read.shape, setup_of(read, options))) {
      if (std::string_view(term.name) == "logits and loss") return term.bytes;
    }
    return 0.0;
  };
  EXPECT_EQ(logits(kLlama3_8b, {{"sequence", "100"}}), 14.0 * 100 * 128256);
  EXPECT_EQ(logits(kLlama3_8b, {{"sequence", "100"}, {"precision", "fp32"}}), 16.0 * 100 * 128256);
  EXPECT_EQ(logits(kLlama3_8b, {{"sequence", "100"}, {"fused-loss", "true"}}), 0);
  EXPECT_EQ(logits(kLlama3_8b, {{"sequence", "100"}, {"tp", "8"}}), 14.0 * 100 * 128256)
      << "Transformers gathers them";
  // BERT's loss is in the type of the logits.
  constexpr const char* kBert =
      R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2,
          "intermediate_size": 128, "vocab_size": 30522, "max_position_embeddings": 512})";
  const double tokens = 100 * 30522;
  EXPECT_EQ(logits(kBert, {{"sequence", "100"}, {"precision", "bf16"}}), 8 * tokens);
  EXPECT_EQ(logits(kBert, {{"sequence", "100"}, {"precision", "amp-bf16"}}), 14 * tokens);
  EXPECT_EQ(logits(kPaperGpt, {{"tp", "2"}}), 6.0 * s * b * 50304 / 2);
}

}  // namespace
}  // namespace gpumemprof
