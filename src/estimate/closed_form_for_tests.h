// Configurations that several tests ask about: well-known models, as their authors published them.
#pragma once

#include <gtest/gtest.h>

#include "estimate/closed_form.h"

namespace gpumemprof {

inline constexpr const char* kLlama2_7b =
    R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "float16"})";
inline constexpr const char* kLlama3_8b =
    R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "max_position_embeddings": 8192, "torch_dtype": "bfloat16"})";
inline constexpr const char* kMistral7b =
    R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "sliding_window": 4096,
        "max_position_embeddings": 32768, "torch_dtype": "bfloat16"})";
inline constexpr const char* kMixtral8x7b =
    R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "max_position_embeddings": 32768, "torch_dtype": "bfloat16"})";
inline constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})";
inline constexpr const char* kDeepSeekV3 =
    R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
        "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "vocab_size": 129280,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "max_position_embeddings": 163840, "torch_dtype": "bfloat16"})";
/// 12 h² + 13 h a layer and nothing else that is odd: what papers calculate with. h = 512, 8 heads,
/// s = 1024.
inline constexpr const char* kPaperGpt =
    "num-layers: 12\nhidden-size: 512\nnum-attention-heads: 8\nseq-length: "
    "1024\nmax-position-embeddings: 1024\n"
    "vocab-size: 50257\nmicro-batch-size: 4\nbf16: true\nattention-backend: unfused\n";

inline ConfigurationCase read_case(std::string_view text) {
  auto read = read_configuration(text);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? std::move(*read) : ConfigurationCase{};
}

inline TrainingSetup setup_of(const ConfigurationCase& read,
                              const std::vector<SetupOption>& options) {
  auto setup = training_setup(read.values, read.shape, options);
  EXPECT_TRUE(setup) << (setup ? "" : setup.error().message);
  return setup ? *setup : TrainingSetup{};
}

/// Bytes of the shares of this category and, where one is given, this name.
inline uint64_t share_bytes(const Prediction& prediction, Category category,
                            std::string_view name = {}) {
  uint64_t sum = 0;
  for (const PredictedShare& share : prediction.at_peak) {
    if (share.category == category && (name.empty() || share.name == name)) sum += share.bytes;
  }
  return sum;
}

inline Prediction predicted(std::string_view config, const std::vector<SetupOption>& options) {
  const ConfigurationCase read = read_case(config);
  auto prediction = predict_closed_form(read.shape, setup_of(read, options));
  EXPECT_TRUE(prediction) << (prediction ? "" : prediction.error().message);
  return prediction ? *prediction : Prediction{};
}

}  // namespace gpumemprof
