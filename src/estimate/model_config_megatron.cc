// Megatron's arguments, as its own tests and launch scripts write them. Defaults are those of its
// argument parser.
#include <algorithm>
#include <charconv>

#include "estimate/model_config.h"

namespace gpumemprof {
namespace {

/// "([0]*1+[1]*15)": lists of 0 and 1, repeated and joined. Empty where it is not written so.
std::vector<bool> layer_pattern(std::string_view text, uint64_t layers) {
  std::vector<bool> out;
  while (!text.empty()) {
    const size_t open = text.find('['), close = text.find(']');
    if (open == text.npos || close == text.npos || close < open) break;
    std::vector<bool> unit;
    for (char c : text.substr(open + 1, close - open - 1)) {
      if (c == '0' || c == '1') unit.push_back(c == '1');
    }
    text.remove_prefix(close + 1);
    uint64_t times = 1;
    if (text.starts_with('*')) {
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times);
      if (error != std::errc() || times > kMaxLayers) return {};
      text.remove_prefix(static_cast<size_t>(end - text.data()));
    }
    for (uint64_t i = 0; i < times && out.size() < layers; ++i)
      out.insert(out.end(), unit.begin(), unit.end());
  }
  out.resize(std::min<size_t>(out.size(), layers));
  return out.size() == layers ? out : std::vector<bool>();
}

void read_megatron_experts(ConfigReader& read, ModelShape& shape) {
  ExpertShape& experts = shape.experts;
  experts.count = read.count("num_experts", 0, kMaxExperts);
  if (experts.count == 0) return;
  experts.per_token = read.count("moe_router_topk", 2, experts.count, 1);
  experts.ffn = read.count("moe_ffn_hidden_size", shape.ffn, kMaxWidth, 1);
  experts.shared_ffn = read.count("moe_shared_expert_intermediate_size", 0, kMaxWidth);
  const std::string pattern = read.text("moe_layer_freq");
  if (const ConfigList* list = read.list("moe_layer_freq"); list && list->size() == shape.layers) {
    for (double value : *list) experts.in_layer.push_back(value != 0);
  } else if (!pattern.empty()) {
    experts.in_layer = layer_pattern(pattern, shape.layers);
    if (experts.in_layer.empty())
      read.refuse(ErrorCode::kBadInput, "moe_layer_freq does not name every layer");
  } else {
    const uint64_t every = read.count("moe_layer_freq", 1, kMaxLayers, 1);
    for (uint64_t i = 0; i < shape.layers; ++i) experts.in_layer.push_back(i % every == 0);
  }
}

void read_latent(ConfigReader& read, ModelShape& shape) {
  if (!read.flag("multi_latent_attention", false)) return;
  LatentAttention latent;
  latent.q_rank = read.count("q_lora_rank", 0, kMaxWidth);
  latent.kv_rank = read.count("kv_lora_rank", 32, kMaxWidth, 1);
  latent.nope_dim = read.count("qk_head_dim", 128, kMaxWidth, 1);
  latent.rope_dim = read.count("qk_pos_emb_head_dim", 64, kMaxWidth, 1);
  latent.value_dim = read.count("v_head_dim", 128, kMaxWidth, 1);
  shape.latent = latent;
}

/// The vocabulary is padded so that every rank has the same share of it.
void read_vocabulary(ConfigReader& read, ModelShape& shape, uint64_t tensor_parallel) {
  if (read.has("padded_vocab_size")) {
    shape.vocabulary = read.required("padded_vocab_size", kMaxVocabulary);
    return;
  }
  uint64_t tokens = read.count("vocab_size", 0, kMaxVocabulary);
  const std::string tokenizer = read.text("tokenizer_type");
  if (tokens == 0 &&
      (tokenizer == "GPT2BPETokenizer" || (tokenizer.empty() && read.has("merge_file")))) {
    tokens = 50257;
    shape.assumptions.push_back({"vocabulary: 50257 tokens", "the tokenizer is GPT-2's"});
  }
  if (tokens == 0) {
    read.refuse(ErrorCode::kBadInput, "has no vocabulary size: add vocab-size");
    return;
  }
  const uint64_t unit =
      read.count("make_vocab_size_divisible_by", 128, kMaxVocabulary, 1) * tensor_parallel;
  shape.vocabulary = (tokens + unit - 1) / unit * unit;
}

}  // namespace

Result<ModelShape> megatron_shape(const ConfigValues& values) {
  ConfigReader read(values);
  ModelShape shape;
  shape.family = "megatron";
  shape.code = ModelCode::kMegatron;
  shape.encoder_layers = read.count("encoder_num_layers", 0, kMaxLayers);
  shape.layers = shape.encoder_layers != 0
                     ? read.count("decoder_num_layers", shape.encoder_layers, kMaxLayers, 1)
                     : read.required("num_layers", kMaxLayers);
  shape.has_cross_attention = shape.encoder_layers != 0;
  shape.hidden = read.required("hidden_size", kMaxWidth);
  shape.heads = read.required("num_attention_heads", kMaxWidth);
  const bool grouped = read.flag("group_query_attention", false);
  read.heads(grouped ? "num_query_groups" : "num_attention_heads", 1, "kv_channels", &shape);
  shape.gated_mlp = read.flag("swiglu", false);
  const uint64_t usual_ffn = shape.gated_mlp ? shape.hidden * 8 / 3 / 64 * 64 : shape.hidden * 4;
  shape.ffn = read.count("ffn_hidden_size", std::max<uint64_t>(1, usual_ffn), 4 * kMaxWidth, 1);
  const bool bias = !read.flag("disable_bias_linear", false);
  shape.mlp_bias = shape.output_bias = bias;
  shape.qkv_bias = bias || read.flag("add_qkv_bias", false);
  shape.norm_bias = read.text("normalization") != "RMSNorm";
  shape.trained_positions = read.count("max_position_embeddings", 0, kMaxTokens);
  const std::string positions = read.text("position_embedding_type");
  if (positions.empty() || positions == "learned_absolute")
    shape.learned_positions = shape.trained_positions;
  shape.tied = !read.flag("untie_embeddings_and_output_weights", false);
  shape.hidden_dropout = read.share("hidden_dropout", 0.1);
  shape.attention_dropout = read.share("attention_dropout", 0.1);
  shape.extra_prediction_layers = read.count("mtp_num_layers", 0, 64);
  shape.token_types = read.count("token_type_count", 0, kMaxVocabulary);
  shape.masked_lm_head = shape.output_layer_bias = read.flag("masked_lm_head", false);
  shape.pooler = shape.masked_lm_head;
  if (shape.pooler) shape.classes = 2;
  read_latent(read, shape);
  if (read.flag("qk_layernorm", false)) shape.qk_norm_size = shape.head_dim;
  read_vocabulary(read, shape, read.count("tensor_model_parallel_size", 1, kMaxWidth, 1));
  if (!read.error()) read_megatron_experts(read, shape);
  shape.weight_bytes = read.flag("bf16", false) || read.flag("fp16", false) ? 2 : 4;
  if (read.error()) return std::unexpected(*read.error());
  return shape;
}

}  // namespace gpumemprof
