#include "estimate/parameters.h"

namespace gpumemprof {
namespace {

void add_linear(WeightGroups& out, const char* name, uint64_t from, uint64_t to, bool bias,
                WeightSplit split, bool split_output, uint64_t copies = 1) {
  out.push_back({name, from, to, copies, split});
  // The bias of a matrix that is split by its input is added once, after the sum: every rank has
  // the whole of it.
  if (bias) out.push_back({name, to, 1, copies, split_output ? split : WeightSplit::kWhole});
}

void add_norm(WeightGroups& out, const ModelShape& shape, uint64_t size, uint64_t copies = 1) {
  out.push_back({"norms", size, 1, copies * (shape.norm_bias ? 2 : 1), WeightSplit::kWhole});
}

void add_attention(WeightGroups& out, const ModelShape& shape, const char* name = "attention") {
  const uint64_t h = shape.hidden, q = shape.heads * shape.head_dim,
                 kv = shape.kv_heads * shape.head_dim;
  add_linear(out, name, h, q, shape.qkv_bias, WeightSplit::kTensor, true);
  add_linear(out, name, h, kv, shape.qkv_bias, WeightSplit::kKeyValue, true, 2);
  add_linear(out, name, q, h, shape.output_bias, WeightSplit::kTensor, false);
  if (shape.qk_norm_size != 0) add_norm(out, shape, shape.qk_norm_size, 2);
}

void add_latent_attention(WeightGroups& out, const ModelShape& shape) {
  const LatentAttention& latent = *shape.latent;
  const uint64_t h = shape.hidden, q = shape.heads * (latent.nope_dim + latent.rope_dim);
  // The narrow projections are whole on every rank; those that open up into heads are split by
  // head. Both have the bias of the attention where it has one.
  if (latent.q_rank == 0) {
    add_linear(out, "attention", h, q, false, WeightSplit::kTensor, true);
  } else {
    add_linear(out, "attention", h, latent.q_rank, shape.output_bias, WeightSplit::kWhole, true);
    add_norm(out, shape, latent.q_rank);
    add_linear(out, "attention", latent.q_rank, q, false, WeightSplit::kTensor, true);
  }
  add_linear(out, "attention", h, latent.kv_rank + latent.rope_dim, shape.output_bias,
             WeightSplit::kWhole, true);
  add_norm(out, shape, latent.kv_rank);
  add_linear(out, "attention", latent.kv_rank, shape.heads * (latent.nope_dim + latent.value_dim),
             false, WeightSplit::kTensor, true);
  add_linear(out, "attention", shape.heads * latent.value_dim, h, shape.output_bias,
             WeightSplit::kTensor, false);
}

void add_mlp(WeightGroups& out, const ModelShape& shape, const char* name, uint64_t ffn,
             WeightSplit split, uint64_t copies, bool bias) {
  add_linear(out, name, shape.hidden, ffn, bias, split, true, copies * (shape.gated_mlp ? 2 : 1));
  // An expert's second bias lies with it, on the ranks that have the expert.
  out.push_back({name, ffn, shape.hidden, copies, split});
  if (bias) {
    out.push_back({name, shape.hidden, 1, copies,
                   split == WeightSplit::kExpert ? split : WeightSplit::kWhole});
  }
}

}  // namespace

WeightGroups layer_weights(const ModelShape& shape, uint64_t layer) {
  WeightGroups out;
  add_norm(out, shape, shape.hidden, shape.norms_per_layer);
  if (shape.latent) {
    add_latent_attention(out, shape);
  } else {
    add_attention(out, shape);
  }
  if (shape.has_cross_attention) {
    add_attention(out, shape, "cross attention");
    add_norm(out, shape, shape.hidden);
    if (shape.relative_buckets != 0 && layer == 0) {
      out.push_back({"attention", shape.relative_buckets, shape.heads, 1, WeightSplit::kTensor});
    }
  }
  if (!shape.has_experts(layer)) {
    add_mlp(out, shape, "mlp", shape.ffn, WeightSplit::kTensor, 1, shape.mlp_bias);
    return out;
  }
  const ExpertShape& experts = shape.experts;
  out.push_back({"router", shape.hidden, experts.count, 1, WeightSplit::kWhole});
  add_mlp(out, shape, "experts", experts.ffn, WeightSplit::kExpert, experts.count, shape.mlp_bias);
  if (experts.shared_ffn != 0)
    add_mlp(out, shape, "shared experts", experts.shared_ffn, WeightSplit::kTensor, 1,
            shape.mlp_bias);
  if (experts.has_shared_gate) out.push_back({"router", shape.hidden, 1, 1, WeightSplit::kWhole});
  return out;
}

WeightGroups encoder_layer_weights(const ModelShape& shape, uint64_t layer) {
  WeightGroups out;
  add_norm(out, shape, shape.hidden, 2);
  add_attention(out, shape);
  if (shape.relative_buckets != 0 && layer == 0) {
    out.push_back({"attention", shape.relative_buckets, shape.heads, 1, WeightSplit::kTensor});
  }
  add_mlp(out, shape, "mlp", shape.ffn, WeightSplit::kTensor, 1, shape.mlp_bias);
  return out;
}

WeightGroups embedding_weights(const ModelShape& shape) {
  WeightGroups out = {{"embedding", shape.vocabulary, shape.hidden, 1, WeightSplit::kTensor}};
  if (shape.learned_positions != 0) {
    out.push_back({"embedding", shape.learned_positions, shape.hidden, 1, WeightSplit::kWhole});
  }
  if (shape.token_types != 0)
    out.push_back({"embedding", shape.token_types, shape.hidden, 1, WeightSplit::kWhole});
  if (shape.norm_after_embedding) add_norm(out, shape, shape.hidden);
  return out;
}

WeightGroups output_weights(const ModelShape& shape) {
  WeightGroups out;
  if (shape.final_norm) add_norm(out, shape, shape.hidden);
  if (shape.encoder_layers != 0) add_norm(out, shape, shape.hidden);  // the encoder's own
  if (shape.pooler)
    add_linear(out, "head", shape.hidden, shape.hidden, true, WeightSplit::kWhole, true);
  if (shape.classes != 0)
    add_linear(out, "head", shape.hidden, shape.classes, shape.pooler, WeightSplit::kWhole, true);
  if (shape.masked_lm_head) {
    add_linear(out, "head", shape.hidden, shape.hidden, true, WeightSplit::kWhole, true);
    add_norm(out, shape, shape.hidden);
  }
  if (shape.output_layer && !shape.tied) out.push_back(tied_output(shape));
  if (shape.output_layer_bias)
    out.push_back({"output layer", shape.vocabulary, 1, 1, WeightSplit::kTensor});
  return out;
}

WeightGroup tied_output(const ModelShape& shape) {
  return {"output layer", shape.vocabulary, shape.hidden, 1, WeightSplit::kTensor};
}

double rough_parameter_count(const ModelShape& shape) {
  const auto rough = [](const WeightGroups& groups) {
    double sum = 0;
    for (const WeightGroup& g : groups) {
      sum += static_cast<double>(g.rows) * static_cast<double>(g.columns) *
             static_cast<double>(g.copies);
    }
    return sum;
  };
  double sum = rough(embedding_weights(shape)) + rough(output_weights(shape));
  for (uint64_t i = 0; i < shape.encoder_layers; ++i) sum += rough(encoder_layer_weights(shape, i));
  for (uint64_t i = 0; i < shape.layers + shape.extra_prediction_layers; ++i)
    sum += rough(layer_weights(shape, i));
  return sum;
}

}  // namespace gpumemprof
