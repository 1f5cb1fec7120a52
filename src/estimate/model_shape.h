// What a configuration says of a transformer: all that parameters, activations and caches follow
// from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/prediction.h"

namespace gpumemprof {

/// Whose code is taken to run the model: it decides which tensors are kept for the backward pass.
enum class ModelCode : uint8_t { kTransformers, kMegatron };

/// Keys and values compressed into one vector a token, as DeepSeek does.
struct LatentAttention {
  uint64_t q_rank = 0;  ///< 0: queries are not compressed
  uint64_t kv_rank = 0, nope_dim = 0, rope_dim = 0, value_dim = 0;
};

struct ExpertShape {
  uint64_t count = 0;  ///< 0: a dense model
  uint64_t per_token = 0;
  uint64_t ffn = 0;
  uint64_t shared_ffn = 0;  ///< of all shared experts together
  bool has_shared_gate = false;
  std::vector<bool> in_layer;  ///< which layers have experts
};

/// Of the matrices of layers; embeddings, norms and the output layer stay as they are.
struct WeightQuantization {
  std::string method;  ///< as quantization_config calls it
  double bits = 0;     ///< a weight, with its share of scales and zero points
};

struct ModelShape {
  std::string family;  ///< "llama", "gpt2", …; "megatron"
  ModelCode code = ModelCode::kTransformers;

  uint64_t layers = 0;          ///< of the decoder, or of the only stack
  uint64_t encoder_layers = 0;  ///< of an encoder before it (T5)
  uint64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  uint64_t vocabulary = 0;
  uint64_t learned_positions = 0;  ///< rows of a table of positions
  uint64_t token_types = 0;
  uint64_t relative_buckets = 0;   ///< T5
  uint64_t trained_positions = 0;  ///< the longest sequence that it is meant for; 0: not said

  bool gated_mlp = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool norm_bias = false;        ///< LayerNorm, not RMSNorm
  uint64_t norms_per_layer = 2;  ///< of size `hidden`
  uint64_t qk_norm_size = 0;     ///< elements of each of q's and k's norm
  bool norm_after_embedding = false;
  bool final_norm = true;
  bool tied = false;  ///< the output layer is the embedding
  bool output_layer = true;
  bool output_layer_bias = false;
  bool masked_lm_head = false;  ///< BERT: a dense layer and a norm before the output
  bool pooler = false;
  uint64_t classes = 0;              ///< of a classifier: behind the pooler, or in its place
  bool has_cross_attention = false;  ///< the decoder's layers look at the encoder
  bool normalises_in_fp32 = false;   ///< RMSNorm of Transformers
  bool scales_norm_in_fp32 =
      false;                       ///< Gemma: what is normalised stays in fp32 until it was scaled
  bool softmax_in_fp32 = false;    ///< of attention by separate operators
  bool caps_scores = false;        ///< tanh over the scores
  bool fused_qkv = false;          ///< one matrix product for queries, keys and values
  bool parallel_residual = false;  ///< attention and MLP read the same input
  bool gelu_of_python = false;     ///< gelu_new: several operators, each keeps its input

  double hidden_dropout = 0, attention_dropout = 0;
  uint64_t sliding_window = 0;        ///< tokens; 0: every token sees all before it
  std::vector<bool> window_in_layer;  ///< which layers have it; empty: all, where there is one
  std::optional<LatentAttention> latent;
  ExpertShape experts;
  uint64_t extra_prediction_layers = 0;  ///< multi-token prediction

  bool has_eager_attention = false;  ///< Transformers has no kernel for it, only operators
  bool upcasts_logits = true;        ///< the loss is computed over an fp32 copy
  bool is_encoder = false;  ///< of the only stack: every token sees all, so nothing is cached

  std::optional<WeightQuantization> quantization;
  uint64_t weight_bytes = 0;  ///< of an element, as the configuration says; 0: it does not
  std::vector<Assumption> assumptions;  ///< defaults that were taken because the file is silent

  bool has_experts(uint64_t layer) const {
    return experts.count != 0 && layer < experts.in_layer.size() && experts.in_layer[layer];
  }
};

}  // namespace gpumemprof
