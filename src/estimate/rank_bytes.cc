#include "estimate/rank_bytes.h"

#include <algorithm>

#include "estimate/activations.h"

namespace gpumemprof {
namespace {

class TrainingRank {
 public:
  TrainingRank(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage)
      : shape_(shape),
        setup_(setup),
        rank_(rank_contents(shape, setup, stage)),
        state_(state_bytes(shape, setup, rank_)) {}

  RankBytes largest_moment() const {
    RankBytes best = at_loss();
    for (RankBytes moment : {at_first_backward(), at_end_of_backward(), at_step()}) {
      if (moment.total() > best.total()) best = std::move(moment);
    }
    return best;
  }

 private:
  /// What is there at every moment of a step but the first.
  RankBytes standing() const {
    RankBytes out;
    out.add(Category::kParameter, "weights", state_.weights);
    out.add(Category::kOptimizerState, "optimizer", state_.optimizer);
    if (state_.gradients_stay) out.add(Category::kGradient, "gradients", state_.gradients);
    out.add(Category::kGradient, "buckets of DistributedDataParallel", state_.buckets);
    out.add(Category::kWorkspace, "workspaces of libraries",
            static_cast<double>(setup_.workspace_bytes));
    if (setup_.pipeline > 1) {
      out.add(Category::kTemporary, "received from other stages", received_bytes(shape_, setup_));
    }
    return out;
  }

  RankBytes at_loss() const {
    RankBytes out = standing();
    add_kept(&out);
    add_while_running(&out);
    if (!rank_.has_output) return out;
    const double copies = static_cast<double>(1 + shape_.extra_prediction_layers);
    for (const KeptTerm& term : kept_by_output(shape_, setup_)) {
      out.add(Category::kActivation, term.name, term.bytes * copies);
    }
    return out;
  }

  /// The last layer is computed again, or its gradients are the first beside those of the output
  /// layer.
  RankBytes at_first_backward() const {
    RankBytes out = standing();
    add_kept(&out);
    add_while_running(&out);
    if (!state_.gradients_stay && rank_.has_output) {
      const double element = is_autocast(setup_.precision) ? 4 : element_bytes(setup_.precision);
      double elements = held_elements(output_weights(shape_), shape_, setup_).all();
      if (shape_.tied && shape_.output_layer)
        elements += held_elements({tied_output(shape_)}, shape_, setup_).all();
      out.add(Category::kGradient, "gradients", elements * element);
    }
    if (setup_.recompute == RecomputeMode::kNone || rank_.layers.empty()) return out;
    const uint64_t last = rank_.layers.back();
    TrainingSetup whole = setup_;
    whole.recompute = RecomputeMode::kNone;
    const LayerStack stack = shape_.encoder_layers != 0 ? LayerStack::kDecoder : LayerStack::kOnly;
    const double again = sum_of(kept_by_layer(shape_, whole, last, stack)) -
                         (setup_.recompute == RecomputeMode::kSelective
                              ? sum_of(kept_by_layer(shape_, setup_, last, stack))
                              : 0.0);
    out.add(Category::kActivation, "a layer that is computed again", again);
    return out;
  }

  RankBytes at_end_of_backward() const {
    RankBytes out = standing();
    if (!state_.gradients_stay) out.add(Category::kGradient, "gradients", state_.gradients);
    add_while_running(&out);
    return out;
  }

  RankBytes at_step() const {
    RankBytes out = standing();
    if (!state_.gradients_stay) out.add(Category::kGradient, "gradients", state_.gradients);
    out.add(Category::kTemporary, "the optimizer's step", state_.step_temporary);
    return out;
  }

  void add_while_running(RankBytes* out) const {
    out->add(Category::kParameter, "weights gathered for the layers in use", state_.gathered);
    out->add(Category::kTemporary, "weights cast by autocast", state_.casts);
  }

  void add_terms(const KeptTerms& terms, double times, RankBytes* out) const {
    for (const KeptTerm& term : terms)
      out->add(Category::kActivation, term.name, term.bytes * times);
  }

  void add_kept(RankBytes* out) const {
    const double in_flight =
        static_cast<double>(rank_.in_flight) / static_cast<double>(setup_.chunks);
    const LayerStack stack = shape_.encoder_layers != 0 ? LayerStack::kDecoder : LayerStack::kOnly;
    for (uint64_t layer : rank_.layers)
      add_terms(kept_with_recompute(shape_, setup_, layer, stack), in_flight, out);
    if (rank_.has_embedding) {
      for (uint64_t i = 0; i < shape_.encoder_layers; ++i) {
        add_terms(kept_with_recompute(shape_, setup_, i, LayerStack::kEncoder), in_flight, out);
      }
      const uint64_t batches =
          std::min(setup_.pipeline, std::max<uint64_t>(1, setup_.micro_batches));
      add_terms(kept_by_embedding(shape_, setup_), static_cast<double>(batches), out);
    }
    if (rank_.has_output && shape_.extra_prediction_layers != 0) {
      add_terms(kept_with_recompute(shape_, setup_, shape_.layers - 1, stack),
                static_cast<double>(shape_.extra_prediction_layers), out);
    }
  }

  const ModelShape& shape_;
  const TrainingSetup& setup_;
  const RankContents rank_;
  const StateBytes state_;
};

/// Keys and values of one layer and one sequence.
double cache_bytes(const ModelShape& shape, const TrainingSetup& setup, uint64_t layer) {
  uint64_t tokens = setup.context_tokens;
  const bool has_window = shape.sliding_window != 0 &&
                          (shape.window_in_layer.empty() ||
                           (layer < shape.window_in_layer.size() && shape.window_in_layer[layer]));
  if (has_window) tokens = std::min(tokens, shape.sliding_window);
  const uint64_t page = std::max<uint64_t>(1, setup.page_tokens);
  tokens = (tokens + page - 1) / page * page;
  double width = 0;
  if (shape.latent) {
    width = static_cast<double>(shape.latent->kv_rank +
                                shape.latent->rope_dim);  // every rank has all of it
  } else {
    const double heads =
        std::max(1.0, static_cast<double>(shape.kv_heads) / static_cast<double>(setup.tensor));
    width = 2 * heads * static_cast<double>(shape.head_dim);
  }
  return static_cast<double>(tokens) * width * static_cast<double>(setup.cache_element_bytes);
}

/// Bytes of all weights as they are served.
double weights_held(const ModelShape& shape, const TrainingSetup& setup, const RankContents& rank) {
  const double element = element_bytes(setup.precision);
  const double all = held_by_rank(shape, setup, rank).all();
  if (!shape.quantization) return all * element;
  double quantized = 0;
  const auto add = [&](const WeightGroups& groups) {
    quantized += held_elements(groups, shape, setup).matrices;
  };
  for (uint64_t layer : rank.layers) add(layer_weights(shape, layer));
  for (uint64_t i = 0; rank.has_embedding && i < shape.encoder_layers; ++i)
    add(encoder_layer_weights(shape, i));
  return (all - quantized) * element + quantized * shape.quantization->bits / 8;
}

}  // namespace

RankContents rank_contents(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage) {
  RankContents out;
  const uint64_t parts = setup.pipeline * setup.chunks;
  for (uint64_t chunk = 0; chunk < setup.chunks; ++chunk) {
    const uint64_t part = chunk * setup.pipeline + stage;
    // The first parts have one more where the layers do not divide.
    const uint64_t from = part * (shape.layers / parts) + std::min(part, shape.layers % parts);
    const uint64_t count = shape.layers / parts + (part < shape.layers % parts ? 1 : 0);
    for (uint64_t i = 0; i < count; ++i) out.layers.push_back(from + i);
  }
  out.has_embedding = stage == 0;
  out.has_output = stage + 1 == setup.pipeline;
  const uint64_t behind = setup.pipeline - stage - 1;
  const uint64_t batches = std::max<uint64_t>(1, setup.micro_batches);
  if (setup.inference || setup.pipeline == 1) {
    out.in_flight = setup.chunks;
  } else if (setup.chunks == 1) {
    out.in_flight = std::min(behind + 1, batches);
  } else {
    out.in_flight =
        std::min(behind * 2 + (setup.chunks - 1) * setup.pipeline + 1, batches * setup.chunks);
  }
  return out;
}

RankBytes training_bytes(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage) {
  RankBytes out = TrainingRank(shape, setup, stage).largest_moment();
  out.name = "stage " + std::to_string(stage + 1) + " of " + std::to_string(setup.pipeline);
  return out;
}

RankBytes inference_bytes(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage) {
  const RankContents rank = rank_contents(shape, setup, stage);
  const double element = element_bytes(setup.precision), batch = static_cast<double>(setup.batch);
  RankBytes out;
  out.name = "stage " + std::to_string(stage + 1) + " of " + std::to_string(setup.pipeline);
  out.add(Category::kParameter, "weights", weights_held(shape, setup, rank));
  for (uint64_t layer : rank.layers) {
    if (shape.is_encoder) break;
    out.add(Category::kKvCache, "keys and values", batch * cache_bytes(shape, setup, layer));
  }
  out.add(Category::kWorkspace, "workspaces of libraries",
          static_cast<double>(setup.workspace_bytes));
  // A prompt runs through one layer at a time: its input and residual, and the widest that is
  // between them.
  const double tokens = batch * static_cast<double>(setup.prompt_tokens);
  const double tensor = static_cast<double>(setup.tensor);
  const double mlp = static_cast<double>(shape.ffn) / tensor * (shape.gated_mlp ? 3 : 2);
  const double attention =
      static_cast<double>((2 * shape.heads + 2 * shape.kv_heads) * shape.head_dim) / tensor;
  out.add(Category::kActivation, "the layer in use",
          tokens * element * (2 * static_cast<double>(shape.hidden) + std::max(mlp, attention)));
  // As they come, the softmax in fp32, and that in the type of the weights.
  if (setup.attention == AttentionKernel::kUnfused)
    out.add(Category::kActivation, "attention scores",
            tokens * static_cast<double>(setup.prompt_tokens) * static_cast<double>(shape.heads) /
                tensor * (2 * element + 4));
  if (rank.has_output && shape.output_layer) {
    const double vocabulary = static_cast<double>(shape.vocabulary);
    if (shape.is_encoder)
      out.add(Category::kActivation, "logits", tokens * vocabulary * element);
    else
      out.add(Category::kActivation, "logits of the last token", batch * vocabulary * 4);
  }
  return out;
}

}  // namespace gpumemprof
