#include "estimate/rank_bytes.h"

#include <algorithm>

#include "estimate/activations.h"

namespace gpumemprof {
namespace {

double ranks_of(const WeightGroup& group, const ModelShape& shape, const TrainingSetup& setup) {
  switch (group.split) {
    case WeightSplit::kTensor:
      return static_cast<double>(setup.tensor);
    case WeightSplit::kKeyValue:
      return static_cast<double>(std::min(setup.tensor, shape.kv_heads));
    case WeightSplit::kExpert:
      return static_cast<double>(setup.expert * setup.expert_tensor);
    case WeightSplit::kWhole:
      break;
  }
  return 1;
}

/// Bytes of state for each element, in units of the state's own precision.
double states_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return 2;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kRmsprop:
    case OptimizerKind::kAdagrad:
      return 1;
    default:
      return 0;
  }
}

double optimizer_bytes(const TrainingSetup& setup, const HeldElements& held, double elements,
                       double state_element) {
  if (setup.optimizer == OptimizerKind::kAdam8bit) {
    return elements * 2 *
           (1 + 4.0 / 256);  // two states of a byte, and a scale in fp32 for each block of 256
  }
  if (setup.optimizer == OptimizerKind::kAdafactor)
    return held.factored * state_element * elements / held.all();
  return elements * states_of(setup.optimizer) * state_element;
}

/// Over how many ranks what is replicated may be split, for the dense weights and for the experts.
struct ReplicaCounts {
  double dense = 1, expert = 1;
};
ReplicaCounts replicas(const TrainingSetup& setup) {
  const double ranks = static_cast<double>(setup.data * setup.context);
  const double expert =
      ranks * static_cast<double>(setup.tensor) / static_cast<double>(setup.expert * setup.expert_tensor);
  return {ranks, std::max(1.0, expert)};
}

/// Weights in the low precision, and in fp32: main gradients, weights to update, and states.
StateBytes megatron_state(const TrainingSetup& setup, const HeldElements& held,
                          const ReplicaCounts& over) {
  const bool low = element_bytes(setup.precision) < 4;
  const bool split_all = setup.fsdp || setup.zero_stage == 3;
  const bool split_state = split_all || setup.distributed_optimizer || setup.zero_stage >= 1;
  const bool split_gradients = split_all || setup.zero_stage >= 2;
  const double shard = held.dense / over.dense + held.expert / over.expert;
  const double state_elements = split_state ? shard : held.all();
  StateBytes out;
  out.weights = (split_all ? shard : held.all()) * (low ? 2 : 4);
  out.gradients = (split_gradients ? shard : held.all()) * 4;
  out.optimizer = state_elements * (low ? 4 : 0) + optimizer_bytes(setup, held, state_elements, 4);
  out.gradients_stay = true;
  return out;
}

StateBytes transformers_state(const TrainingSetup& setup, const HeldElements& held,
                              const ReplicaCounts& over) {
  const bool autocast = is_autocast(setup.precision);
  const double element = autocast ? 4 : element_bytes(setup.precision);
  const double shard = held.dense / over.dense + held.expert / over.expert;
  const auto held_if = [&](bool split) { return split ? shard : held.all(); };
  const uint64_t zero = setup.fsdp ? 3 : setup.zero_stage;
  StateBytes out;
  if (zero == 0) {
    out.weights = held.all() * element;
    out.gradients = held.all() * element;
    // What has no replica is not reduced.
    out.buckets =
        ((over.dense > 1 ? held.dense : 0) + (over.expert > 1 ? held.expert : 0)) * element;
    out.optimizer = optimizer_bytes(setup, held, held.all(), element);
    out.gradients_stay = setup.micro_batches > 1;
    const bool foreach_copies = setup.optimizer == OptimizerKind::kAdam ||
                                setup.optimizer == OptimizerKind::kRmsprop ||
                                setup.optimizer == OptimizerKind::kAdagrad;
    out.step_temporary = foreach_copies ? held.all() * element : 0;
  } else {
    // What is updated is in fp32: FSDP splits those weights themselves, ZeRO keeps them beside the
    // low-precision ones.
    const double low = setup.precision == TrainingPrecision::kFp32 ? 4 : 2;
    out.weights = held_if(zero >= 3) * (setup.fsdp ? 4 : low);
    out.gradients = held_if(zero >= 2) * (setup.fsdp ? 4 : low);
    out.optimizer =
        (low < 4 && !setup.fsdp ? shard * 4 : 0) + optimizer_bytes(setup, held, shard, 4);
    out.gradients_stay = true;
  }
  if (autocast && zero < 3) out.casts = held.matrices * 2;
  return out;
}

}  // namespace

HeldElements& HeldElements::operator+=(const HeldElements& other) {
  dense += other.dense;
  expert += other.expert;
  matrices += other.matrices;
  factored += other.factored;
  return *this;
}

HeldElements held_elements(const WeightGroups& groups, const ModelShape& shape,
                           const TrainingSetup& setup) {
  HeldElements out;
  for (const WeightGroup& group : groups) {
    const double ranks = ranks_of(group, shape, setup);
    const double elements = static_cast<double>(group.elements()) / ranks;
    (group.split == WeightSplit::kExpert ? out.expert : out.dense) += elements;
    if (group.columns > 1) {
      out.matrices += elements;
      out.factored += static_cast<double>(group.rows + group.columns) *
                      static_cast<double>(group.copies) / ranks;
    } else {
      out.factored += elements;
    }
  }
  return out;
}

HeldElements held_by_rank(const ModelShape& shape, const TrainingSetup& setup,
                          const RankContents& rank) {
  HeldElements out;
  const auto add = [&](const WeightGroups& groups) { out += held_elements(groups, shape, setup); };
  for (uint64_t layer : rank.layers) add(layer_weights(shape, layer));
  if (rank.has_embedding) {
    add(embedding_weights(shape));
    for (uint64_t i = 0; i < shape.encoder_layers; ++i) add(encoder_layer_weights(shape, i));
  }
  if (!rank.has_output) return out;
  add(output_weights(shape));
  if (shape.output_layer && shape.tied && !rank.has_embedding) add({tied_output(shape)});
  for (uint64_t i = 0; i < shape.extra_prediction_layers; ++i) {
    add(layer_weights(shape, shape.layers - 1));
    add({{"prediction", 2 * shape.hidden, shape.hidden, 1, WeightSplit::kTensor}});
    add({{"norms", shape.hidden, 1, shape.norm_bias ? 6u : 3u, WeightSplit::kWhole}});
    // Its tokens are embedded on this rank, too.
    if (!rank.has_embedding && !shape.tied) add(embedding_weights(shape));
  }
  return out;
}

StateBytes state_bytes(const ModelShape& shape, const TrainingSetup& setup,
                       const RankContents& rank) {
  const HeldElements held = held_by_rank(shape, setup, rank);
  const ReplicaCounts over = replicas(setup);
  StateBytes out = shape.code == ModelCode::kMegatron ? megatron_state(setup, held, over)
                                                      : transformers_state(setup, held, over);
  if ((setup.fsdp || setup.zero_stage == 3) && !rank.layers.empty()) {
    // The layer in use and the next, which is fetched meanwhile; and the embedding and output layer
    // where they are.
    HeldElements whole = held_elements(layer_weights(shape, rank.layers.back()), shape, setup);
    whole += whole;
    if (rank.has_embedding) whole += held_elements(embedding_weights(shape), shape, setup);
    if (rank.has_output) whole += held_elements(output_weights(shape), shape, setup);
    out.gathered = whole.all() * element_bytes(setup.precision);
  }
  return out;
}

}  // namespace gpumemprof
