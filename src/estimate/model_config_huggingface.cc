// Hugging Face's config.json, one function a family. What a family has by default is what its class
// in Transformers has.
#include <algorithm>

#include "base/in_quotes.h"
#include "estimate/model_config.h"

namespace gpumemprof {
namespace {

using Reader = ConfigReader;

void read_width(Reader& read, ModelShape& shape) {
  shape.layers = read.required("num_hidden_layers", kMaxLayers);
  shape.hidden = read.required("hidden_size", kMaxWidth);
  shape.heads = read.required("num_attention_heads", kMaxWidth);
  read.heads("num_key_value_heads", shape.heads, "head_dim", &shape);
  shape.ffn = read.required("intermediate_size", kMaxWidth);
  shape.vocabulary = read.required("vocab_size", kMaxVocabulary);
  shape.trained_positions = read.count("max_position_embeddings", 0, kMaxTokens);
  shape.attention_dropout = read.share("attention_dropout", 0);
}

void check_layer_types(Reader& read, const ModelShape& shape) {
  const ConfigTexts* types = read.texts("layer_types");
  if (types == nullptr) return;
  if (types->size() != shape.layers)
    return read.refuse(ErrorCode::kBadInput, "layer_types has " + std::to_string(types->size()) +
                                                 " entries for " + std::to_string(shape.layers) +
                                                 " layers");
  const auto unknown = std::ranges::find_if(*types, [](const std::string& type) {
    return type != "sliding_attention" && type != "full_attention";
  });
  if (unknown != types->end())
    read.refuse(ErrorCode::kUnsupported,
                "layer_types has " + in_quotes(*unknown) + ", which is unknown for this family");
}

/// Which layers have the window: as layer_types says, or else as the family's class has it.
template <class Rule>
void read_window_layers(Reader& read, ModelShape& shape, Rule has_window) {
  check_layer_types(read, shape);
  if (read.error()) return;
  const ConfigTexts* types = read.texts("layer_types");
  for (uint64_t i = 0; i < shape.layers; ++i)
    shape.window_in_layer.push_back(types ? (*types)[i] == "sliding_attention" : has_window(i));
}

/// Heads that Transformers' classes of a decoder have in place of the output layer.
void read_decoder_head(Reader& read, ModelShape& shape) {
  const std::string kind = read.text("architectures_0");
  const bool classifies = kind.ends_with("ForSequenceClassification");
  if (!classifies && !kind.ends_with("Model")) return;
  if (kind.ends_with("HeadModel") || kind.ends_with("HeadsModel")) return;  // GPT-2's
  shape.output_layer = shape.output_layer_bias = shape.tied = false;
  if (classifies) shape.classes = read.count("num_labels", 2, kMaxVocabulary, 1);
}

/// Qwen's windows are off unless they are switched on, and then not in every layer; of Qwen 3 with
/// experts they are in every one.
void read_qwen_window(Reader& read, ModelShape& shape) {
  if (!read.flag("use_sliding_window", false) || read.is_null("sliding_window")) return;
  shape.sliding_window = read.count("sliding_window", 4096, kMaxTokens);
  const uint64_t boundary = read.count("max_window_layers", 28, kMaxLayers);
  if (shape.family == "qwen2_moe") {
    read_window_layers(read, shape, [&](uint64_t i) { return i % 2 == 0 && i < boundary; });
  } else if (shape.family != "qwen3_moe") {
    read_window_layers(read, shape, [&](uint64_t i) { return i >= boundary; });
  }
}

/// Llama and those that follow it: RMSNorm, gated MLP, rotary positions.
void read_llama(Reader& read, ModelShape& shape) {
  read_width(read, shape);
  shape.gated_mlp = shape.normalises_in_fp32 = shape.softmax_in_fp32 = true;
  shape.tied = read.flag("tie_word_embeddings", false);
  if (shape.family == "llama") {
    shape.qkv_bias = shape.output_bias = read.flag("attention_bias", false);
    shape.mlp_bias = read.flag("mlp_bias", false);
  } else if (shape.family == "mistral" || shape.family == "mixtral") {
    const bool has_one = shape.family == "mistral" && !read.is_null("sliding_window");
    shape.sliding_window = read.count("sliding_window", has_one ? 4096 : 0, kMaxTokens);
  } else if (shape.family == "qwen2" || shape.family == "qwen2_moe") {
    shape.qkv_bias = true;
    read_qwen_window(read, shape);
  } else if (shape.family == "qwen3" || shape.family == "qwen3_moe") {
    shape.head_dim = read.count("head_dim", 128, kMaxWidth, 1);
    shape.qkv_bias = shape.output_bias = read.flag("attention_bias", false);
    shape.qk_norm_size = shape.head_dim;
    read_qwen_window(read, shape);
  }
}

/// A null switches the cap off; where the configuration is silent there is one.
bool caps_scores_by(Reader& read) { return !read.is_null("attn_logit_softcapping"); }

void read_gemma(Reader& read, ModelShape& shape) {
  read_width(read, shape);
  shape.head_dim = read.count("head_dim", 256, kMaxWidth, 1);
  shape.gated_mlp = shape.normalises_in_fp32 = shape.softmax_in_fp32 = shape.scales_norm_in_fp32 =
      true;
  shape.tied = read.flag("tie_word_embeddings", true);
  shape.qkv_bias = shape.output_bias = read.flag("attention_bias", false);
  if (shape.family == "gemma") return;
  shape.norms_per_layer = 4;
  shape.caps_scores = shape.family == "gemma2" && caps_scores_by(read);
  shape.has_eager_attention = shape.family == "gemma2";  // _supports_sdpa is False, 5.23
  if (shape.family == "gemma3_text") shape.qk_norm_size = shape.head_dim;
  shape.sliding_window = read.count("sliding_window", 4096, kMaxTokens);
  // Gemma 2: every other layer sees a window; Gemma 3: all but each sixth.
  const uint64_t pattern =
      shape.family == "gemma2" ? 2 : read.count("sliding_window_pattern", 6, kMaxLayers, 1);
  read_window_layers(read, shape, [&](uint64_t i) { return (i + 1) % pattern != 0; });
}

void read_gpt2(Reader& read, ModelShape& shape) {
  shape.layers = read.required("n_layer", kMaxLayers);
  shape.hidden = read.required("n_embd", kMaxWidth);
  shape.heads = shape.kv_heads = read.required("n_head", kMaxWidth);
  shape.head_dim = std::max<uint64_t>(1, shape.hidden / shape.heads);
  shape.ffn = read.count("n_inner", 4 * shape.hidden, 4 * kMaxWidth, 1);
  shape.vocabulary = read.required("vocab_size", kMaxVocabulary);
  shape.learned_positions = shape.trained_positions = read.count("n_positions", 1024, kMaxTokens);
  shape.qkv_bias = shape.output_bias = shape.mlp_bias = shape.norm_bias = true;
  shape.tied = read.flag("tie_word_embeddings", true);
  shape.hidden_dropout = read.share("resid_pdrop", 0.1);
  shape.attention_dropout = read.share("attn_pdrop", 0.1);
  shape.gelu_of_python =
      !read.has("activation_function") || read.text("activation_function") == "gelu_new";
}

void read_gpt_neox(Reader& read, ModelShape& shape) {
  read_width(read, shape);
  shape.qkv_bias = shape.output_bias = read.flag("attention_bias", true);
  shape.mlp_bias = shape.norm_bias = true;
  shape.tied = read.flag("tie_word_embeddings", false);
  shape.hidden_dropout = read.share("hidden_dropout", 0);
  shape.fused_qkv = shape.softmax_in_fp32 = true;
  shape.parallel_residual = read.flag("use_parallel_residual", true);
}

void read_bert(Reader& read, ModelShape& shape) {
  read_width(read, shape);
  shape.is_encoder = true;
  shape.upcasts_logits = false;
  shape.learned_positions = shape.trained_positions;
  shape.token_types = read.count("type_vocab_size", 2, kMaxVocabulary);
  shape.qkv_bias = shape.output_bias = shape.mlp_bias = shape.norm_bias = true;
  shape.norm_after_embedding = true;
  shape.final_norm = false;
  shape.hidden_dropout = read.share("hidden_dropout_prob", 0.1);
  shape.attention_dropout = read.share("attention_probs_dropout_prob", 0.1);
  const std::string kind = read.text("architectures_0");
  shape.tied = true;
  if (kind == "BertModel" || kind == "BertForSequenceClassification") {
    shape.output_layer = false;
    shape.pooler = true;
    if (kind != "BertModel") shape.classes = read.count("num_labels", 2, kMaxVocabulary, 1);
    return;
  }
  if (kind != "BertForMaskedLM" && kind != "BertForPreTraining") {
    shape.assumptions.push_back(
        {"the model is BertForMaskedLM", "the configuration names no known class"});
  }
  shape.masked_lm_head = shape.output_layer_bias = true;
  if (kind == "BertForPreTraining") {
    shape.pooler = true;
    shape.classes = 2;
  }
}

void read_t5(Reader& read, ModelShape& shape) {
  shape.encoder_layers = read.required("num_layers", kMaxLayers);
  shape.layers = read.count("num_decoder_layers", shape.encoder_layers, kMaxLayers, 1);
  shape.hidden = read.required("d_model", kMaxWidth);
  shape.heads = shape.kv_heads = read.required("num_heads", kMaxWidth);
  shape.head_dim = read.required("d_kv", kMaxWidth);
  shape.ffn = read.required("d_ff", kMaxWidth);
  shape.vocabulary = read.required("vocab_size", kMaxVocabulary);
  shape.relative_buckets = read.count("relative_attention_num_buckets", 32, kMaxTokens);
  shape.trained_positions = read.count("n_positions", 0, kMaxTokens);
  shape.gated_mlp = read.text("feed_forward_proj").starts_with("gated-");
  shape.upcasts_logits = false;
  shape.has_cross_attention = shape.normalises_in_fp32 = shape.softmax_in_fp32 = true;
  shape.tied = read.flag("tie_word_embeddings", true);
  shape.hidden_dropout = shape.attention_dropout = read.share("dropout_rate", 0.1);
}

void read_huggingface_experts(Reader& read, ModelShape& shape) {
  ExpertShape& experts = shape.experts;
  if (shape.family == "mixtral") {
    experts.count = read.count("num_local_experts", 8, kMaxExperts, 1);
    experts.ffn = shape.ffn;
    experts.in_layer.assign(shape.layers, true);
  } else if (shape.family == "qwen2_moe" || shape.family == "qwen3_moe") {
    experts.count = read.has("num_experts") ? read.required("num_experts", kMaxExperts)
                                            : read.required("num_local_experts", kMaxExperts);
    experts.ffn = read.required("moe_intermediate_size", kMaxWidth);
    const uint64_t step = read.count("decoder_sparse_step", 1, kMaxLayers, 1);
    for (uint64_t i = 0; i < shape.layers; ++i) experts.in_layer.push_back((i + 1) % step == 0);
    if (const ConfigList* dense = read.list("mlp_only_layers")) {
      for (double layer : *dense) {
        if (layer >= 0 && layer < static_cast<double>(shape.layers))
          experts.in_layer[static_cast<size_t>(layer)] = false;
      }
    }
    if (shape.family == "qwen2_moe") {
      experts.shared_ffn = read.required("shared_expert_intermediate_size", kMaxWidth);
      experts.has_shared_gate = true;
    }
  } else {
    experts.count = read.count("n_routed_experts", 0, kMaxExperts);
    if (experts.count == 0) return;
    experts.ffn = read.required("moe_intermediate_size", kMaxWidth);
    experts.shared_ffn = experts.ffn * read.count("n_shared_experts", 0, 1024);
    const uint64_t dense = read.count("first_k_dense_replace", 0, kMaxLayers);
    for (uint64_t i = 0; i < shape.layers; ++i) experts.in_layer.push_back(i >= dense);
  }
  experts.per_token = read.count("num_experts_per_tok", 2, experts.count, 1);
}

void read_deepseek(Reader& read, ModelShape& shape) {
  read_width(read, shape);
  shape.gated_mlp = shape.normalises_in_fp32 = shape.softmax_in_fp32 = true;
  shape.tied = read.flag("tie_word_embeddings", false);
  shape.output_bias = read.flag("attention_bias", false);
  LatentAttention latent;
  latent.q_rank = read.count("q_lora_rank", 0, kMaxWidth);
  latent.kv_rank = read.required("kv_lora_rank", kMaxWidth);
  latent.nope_dim = read.required("qk_nope_head_dim", kMaxWidth);
  latent.rope_dim = read.required("qk_rope_head_dim", kMaxWidth);
  latent.value_dim = read.required("v_head_dim", kMaxWidth);
  shape.latent = latent;
}

uint64_t element_bytes(const std::string& type) {
  if (type == "float32") return 4;
  if (type == "bfloat16" || type == "float16") return 2;
  return type == "float64" ? 8 : 0;
}

}  // namespace

Result<ModelShape> huggingface_shape(const ConfigValues& values) {
  ConfigReader read(values);
  ModelShape shape;
  shape.family = read.text("model_type");
  const std::string& family = shape.family;
  const bool has_experts = family == "mixtral" || family == "qwen2_moe" || family == "qwen3_moe";
  if (family == "llama" || family == "mistral" || family == "qwen2" || family == "qwen3" ||
      has_experts) {
    read_llama(read, shape);
  } else if (family == "gemma" || family == "gemma2" || family == "gemma3_text") {
    read_gemma(read, shape);
  } else if (family == "gpt2") {
    read_gpt2(read, shape);
  } else if (family == "gpt_neox") {
    read_gpt_neox(read, shape);
  } else if (family == "bert") {
    read_bert(read, shape);
  } else if (family == "t5") {
    read_t5(read, shape);
  } else if (family == "deepseek_v2" || family == "deepseek_v3") {
    read_deepseek(read, shape);
  } else {
    return fail(
        ErrorCode::kUnsupported,
        "model_type " + in_quotes(family) +
            " is not supported: use llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, "
            "gemma, gemma2, gemma3_text, gpt2, gpt_neox, bert, t5, deepseek_v2, deepseek_v3");
  }
  if ((has_experts || shape.latent) && !read.error()) read_huggingface_experts(read, shape);
  shape.weight_bytes =
      element_bytes(read.has("dtype") ? read.text("dtype") : read.text("torch_dtype"));
  if (family != "t5") check_layer_types(read, shape);
  if (family != "t5" && !shape.is_encoder) read_decoder_head(read, shape);
  read_quantization(read, shape);
  if (read.error()) return std::unexpected(*read.error());
  return shape;
}

}  // namespace gpumemprof
