#include "estimate/activations.h"

#include <algorithm>

namespace gpumemprof {
namespace {

/// One layer's terms. Products are of counts in double: they stay exact far beyond any real model,
/// and cannot wrap.
class LayerTerms {
 public:
  LayerTerms(const ModelShape& shape, const TrainingSetup& setup, LayerStack stack)
      : shape_(shape),
        setup_(setup),
        e_(element_bytes(setup.precision)),
        autocast_(is_autocast(setup.precision)),
        megatron_(shape.code == ModelCode::kMegatron),
        h_(static_cast<double>(shape.hidden)),
        tensor_(static_cast<double>(setup.tensor)),
        whole_(setup.sequence_parallel ? tensor_ : 1) {
    const uint64_t length = stack == LayerStack::kDecoder ? setup.decoder_sequence : setup.sequence;
    sequence_ = static_cast<double>(length) / static_cast<double>(setup.context);
    keys_ = static_cast<double>(length);
    tokens_ = static_cast<double>(setup.batch) * sequence_;
    encoder_tokens_ = static_cast<double>(setup.batch) * static_cast<double>(setup.sequence);
  }

  KeptTerms write(uint64_t layer, LayerStack stack) {
    const bool shares_input = shape_.parallel_residual && !megatron_;
    norm("norms", shape_.fused_qkv ? 1 : 3, true);
    if (shape_.latent) {
      latent_attention();
    } else {
      attention(tokens_, tokens_, keys_, "attention");
    }
    if (stack == LayerStack::kDecoder && shape_.has_cross_attention) {
      norm("norms", 1, true);
      attention(tokens_, encoder_tokens_, static_cast<double>(setup_.sequence), "cross attention");
      dropout(1);
    }
    norm("norms", shape_.gated_mlp ? 2 : 1, !shares_input);
    // Those behind attention and MLP: what they give goes into a sum, which keeps nothing.
    for (uint64_t i = 2; i < shape_.norms_per_layer; ++i) norm("norms", 0, true);
    dropout(2);
    if (shape_.has_experts(layer)) {
      if (!is_again(&RecomputedModules::experts)) experts();
    } else if (!is_again(&RecomputedModules::mlp)) {
      mlp("mlp", tokens_, static_cast<double>(shape_.ffn) / tensor_);
    }
    return std::move(terms_);
  }

 private:
  void add(const char* name, double bytes) {
    if (bytes > 0) terms_.push_back({name, bytes});
  }

  /// Takes off what the last term had too much.
  void add_less(const char* name, double bytes) {
    if (!terms_.empty() && terms_.back().name == std::string_view(name))
      terms_.back().bytes -= std::min(bytes, terms_.back().bytes);
  }

  /// Whether selective recomputation has it computed again, so that nothing of it is kept.
  bool is_again(bool RecomputedModules::* module) const {
    return megatron_ && setup_.recompute == RecomputeMode::kSelective && setup_.recomputed.*module;
  }

  /// `readers`: matrix products that read the norm's output. Under autocast each has a copy of its
  /// own.
  void norm(const char* name, double readers, bool has_own_input) {
    const double elements = tokens_ / whole_ * h_;
    const bool rms = shape_.normalises_in_fp32 && !megatron_;
    const double wide =
        autocast_ ? 4 : e_;  // autocast leaves the stream between the layers in fp32
    double bytes = 0;
    if (has_own_input) bytes += rms ? 4 : wide;
    if (rms)
      bytes += shape_.scales_norm_in_fp32 || autocast_
                   ? 4
                   : e_;  // what was normalised, for the weight's gradient
    // Computed again, its output is dropped as soon as it was read.
    const bool is_dropped = is_again(&RecomputedModules::norms);
    bytes += autocast_ ? 2 * readers : readers > 0 && !is_dropped ? e_ : 0;
    add(name, elements * bytes);
    if (!rms) add(name, tokens_ / whole_ * 8);  // mean and deviation of each token
  }

  void dropout(double times) {
    if (shape_.hidden_dropout > 0) add("dropout masks", times * tokens_ / whole_ * h_);
  }

  /// Queries of `q_tokens`, keys and values of `kv_tokens`.
  void attention(double q_tokens, double kv_tokens, double keys, const char* name) {
    const bool flash = setup_.attention == AttentionKernel::kFlash;
    const double q = static_cast<double>(shape_.heads * shape_.head_dim) / tensor_;
    const double groups = std::max(1.0, static_cast<double>(shape_.kv_heads) / tensor_);
    const double kv = groups * static_cast<double>(shape_.head_dim);
    // Separate operators of Transformers repeat keys and values for every head.
    const double kept_kv = flash || megatron_ ? kv : q;
    add(name, e_ * (q_tokens * q + kv_tokens * 2 * kept_kv));
    // Rotated queries and keys are new, the values a view: it holds all that one matrix product
    // gave.
    const bool holds_all = shape_.fused_qkv && flash && !megatron_ && shape_.learned_positions == 0;
    if (holds_all) add(name, e_ * (q_tokens * q + kv_tokens * kv));
    if (shape_.qk_norm_size != 0) qk_norm(q_tokens * q + kv_tokens * kv);
    scores(q_tokens, keys, q, name);
  }

  /// Before the norm, and what was normalised; attention itself keeps what comes of it.
  void qk_norm(double elements) { add("norms", elements * (megatron_ ? e_ : 4 + e_)); }

  /// What is kept between the queries and the output of attention.
  void scores(double q_tokens, double keys, double out_width, const char* name) {
    const double heads = static_cast<double>(shape_.heads) / tensor_;
    add(name, e_ * q_tokens * out_width);
    if (setup_.attention == AttentionKernel::kFlash) {
      add(name, 4 * q_tokens * heads);  // the logarithm of each row's sum
      // Megatron's layout is (sequence, batch): the kernel's output is kept, and a copy in that
      // layout.
      if (megatron_) add(name, e_ * q_tokens * out_width);
      return;
    }
    if (is_again(&RecomputedModules::core_attention)) return;
    // A softmax in fp32 is kept there and in the low precision.
    const bool wide = !megatron_ && e_ < 4 && (shape_.softmax_in_fp32 || autocast_);
    double bytes = e_ + (wide ? 4 : 0) + (shape_.caps_scores ? e_ : 0);
    if (shape_.attention_dropout > 0) bytes += 1 + e_;
    add("attention scores", q_tokens * keys * heads * bytes);
  }

  void latent_attention() {
    const LatentAttention& latent = *shape_.latent;
    const double heads = static_cast<double>(shape_.heads) / tensor_;
    const double query = heads * static_cast<double>(latent.nope_dim + latent.rope_dim);
    const double opened = heads * static_cast<double>(latent.nope_dim + latent.value_dim);
    const double out = heads * static_cast<double>(latent.value_dim);
    const double ranks = static_cast<double>(latent.q_rank + latent.kv_rank);
    add("attention", tokens_ * ranks * (megatron_ ? 2 * e_ : 4 + 2 * e_));
    if (!is_again(&RecomputedModules::latent_up))
      add("attention", tokens_ * e_ * (2 * query + opened));
    scores(tokens_, keys_, out, "attention");
  }

  /// `ffn`: on this rank.
  void mlp(const char* name, double tokens, double ffn) {
    if (shape_.gated_mlp) {
      // Megatron's fused kernel keeps both halves and what follows; separate operators keep the
      // activated half, too.
      add(name, tokens * ffn * e_ * (megatron_ ? 3 : 4));
    } else {
      add(name, tokens * ffn * e_ * (shape_.gelu_of_python && !megatron_ ? 5 : 2));
    }
  }

  void experts() {
    const ExpertShape& experts = shape_.experts;
    const double own_tokens = tokens_ / whole_;
    const double expert_tensor = static_cast<double>(setup_.expert_tensor);
    double routed =
        own_tokens * static_cast<double>(experts.per_token) * (whole_ > 1 ? expert_tensor : 1);
    if (setup_.capacity_factor > 0) routed *= setup_.capacity_factor;
    add("router", own_tokens * static_cast<double>(experts.count) * 4 * 2);
    // What is sent to the experts, and what comes back and is weighted.
    add("experts", routed * h_ * e_ * 2);
    const double expert_ffn = static_cast<double>(experts.ffn) / expert_tensor;
    mlp("experts", routed, expert_ffn);
    // What the activation gave is made again from what it took.
    if (is_again(&RecomputedModules::expert_activation))
      add_less("experts", routed * expert_ffn * e_);
    if (experts.shared_ffn != 0 && !is_again(&RecomputedModules::shared_experts))
      mlp("shared experts", tokens_, static_cast<double>(experts.shared_ffn) / tensor_);
  }

  const ModelShape& shape_;
  const TrainingSetup& setup_;
  const double e_;
  const bool autocast_, megatron_;
  const double h_, tensor_;
  const double
      whole_;  ///< over how many ranks that is split which tensor parallelism alone leaves whole
  double sequence_ = 0, keys_ = 0, tokens_ = 0, encoder_tokens_ = 0;
  KeptTerms terms_;
};

double tokens_of(const TrainingSetup& setup, LayerStack stack) {
  const uint64_t length = stack == LayerStack::kDecoder ? setup.decoder_sequence : setup.sequence;
  return static_cast<double>(setup.batch) * static_cast<double>(length) /
         static_cast<double>(setup.context);
}

}  // namespace

double element_bytes(TrainingPrecision precision) {
  return precision == TrainingPrecision::kFp32 ? 4 : 2;
}

bool is_autocast(TrainingPrecision precision) {
  return precision == TrainingPrecision::kAmpBf16 || precision == TrainingPrecision::kAmpFp16;
}

double sum_of(const KeptTerms& terms) {
  double sum = 0;
  for (const KeptTerm& term : terms) sum += term.bytes;
  return sum;
}

KeptTerms kept_by_layer(const ModelShape& shape, const TrainingSetup& setup, uint64_t layer,
                        LayerStack stack) {
  return LayerTerms(shape, setup, stack).write(layer, stack);
}

KeptTerms kept_with_recompute(const ModelShape& shape, const TrainingSetup& setup, uint64_t layer,
                              LayerStack stack) {
  if (setup.recompute != RecomputeMode::kFull) return kept_by_layer(shape, setup, layer, stack);
  const double input = is_autocast(setup.precision) ? 4 : element_bytes(setup.precision);
  const double whole = setup.sequence_parallel ? static_cast<double>(setup.tensor) : 1;
  return {{"layer inputs",
           tokens_of(setup, stack) * static_cast<double>(shape.hidden) * input / whole}};
}

double received_bytes(const ModelShape& shape, const TrainingSetup& setup) {
  const double whole = setup.sequence_parallel ? static_cast<double>(setup.tensor) : 1;
  return 2 * tokens_of(setup, LayerStack::kOnly) * static_cast<double>(shape.hidden) *
         element_bytes(setup.precision) / whole;
}

KeptTerms kept_by_embedding(const ModelShape& shape, const TrainingSetup& setup) {
  KeptTerms terms;
  const double t = tokens_of(setup, LayerStack::kEncoder), h = static_cast<double>(shape.hidden);
  terms.push_back(
      {"tokens", t * 8 * 4});  // ids, labels, positions, the loss mask: 8 bytes each at most
  const double whole = setup.sequence_parallel ? static_cast<double>(setup.tensor) : 1;
  if (shape.hidden_dropout > 0) terms.push_back({"dropout masks", t * h / whole});
  if (shape.norm_after_embedding)
    terms.push_back({"norms", t * h * element_bytes(setup.precision) * 2});
  return terms;
}

KeptTerms kept_by_output(const ModelShape& shape, const TrainingSetup& setup) {
  KeptTerms terms;
  const bool has_decoder = shape.encoder_layers != 0;
  const double t = tokens_of(setup, has_decoder ? LayerStack::kDecoder : LayerStack::kOnly);
  const double h = static_cast<double>(shape.hidden), e = element_bytes(setup.precision);
  const double whole = setup.sequence_parallel ? static_cast<double>(setup.tensor) : 1;
  if (shape.final_norm) terms.push_back({"norms", t / whole * h * 2 * e});
  if (shape.masked_lm_head) terms.push_back({"head", t * h * 4 * e});
  if (!shape.output_layer) return terms;
  // Transformers gathers what the ranks have of them, for the loss.
  const bool is_split = shape.code == ModelCode::kMegatron;
  const double logits = t * static_cast<double>(shape.vocabulary) /
                        (is_split ? static_cast<double>(setup.tensor) : 1);
  double bytes = 0;
  if (shape.code == ModelCode::kMegatron) {
    // The logits as they come, and in fp32; the softmax is made in their place. The fused kernel
    // makes another.
    bytes = (e < 4 ? e : 0) + 4 + (setup.fused_loss ? 4 : 0);
    if (setup.sequence_parallel) terms.push_back({"gathered for the output layer", t * h * e});
  } else if (!setup.fused_loss) {
    // Backward of the loss: the logits that the caller holds, the softmax, its gradient, the
    // gradient of the logits.
    bytes = e + 3 * (shape.upcasts_logits || is_autocast(setup.precision) ? 4 : e);
  }
  terms.push_back({"logits and loss", logits * bytes});
  return terms;
}

}  // namespace gpumemprof
