// What autograd keeps of one micro batch until the backward pass, layer by layer, operator by
// operator. docs/estimate-configurations.md has the terms and where each comes from.
#pragma once

#include <vector>

#include "estimate/model_shape.h"
#include "estimate/training_setup.h"

namespace gpumemprof {

/// In bytes; fractions are rounded where terms have been added up.
struct KeptTerm {
  const char* name = "";
  double bytes = 0;
};
using KeptTerms = std::vector<KeptTerm>;

/// Which stack a layer is in: they differ in sequence length and in what they look at.
enum class LayerStack : uint8_t { kOnly, kEncoder, kDecoder };

/// Of one layer, on one rank, without recomputation.
KeptTerms kept_by_layer(const ModelShape& shape, const TrainingSetup& setup, uint64_t layer,
                        LayerStack stack);
/// Of the same layer as the setup says: with full recomputation its input alone.
KeptTerms kept_with_recompute(const ModelShape& shape, const TrainingSetup& setup, uint64_t layer,
                              LayerStack stack);

/// What the embedding keeps besides the first layer's input.
KeptTerms kept_by_embedding(const ModelShape& shape, const TrainingSetup& setup);

/// The last norm, the logits and the loss, at the moment when they take most. Both are of one micro
/// batch.
KeptTerms kept_by_output(const ModelShape& shape, const TrainingSetup& setup);

/// Between two stages of a pipeline: what came from the one before, and a gradient from the one
/// behind.
double received_bytes(const ModelShape& shape, const TrainingSetup& setup);

double sum_of(const KeptTerms& terms);

/// Bytes of an element of an activation.
double element_bytes(TrainingPrecision precision);
/// Matrix products in a low precision over weights in fp32.
bool is_autocast(TrainingPrecision precision);

}  // namespace gpumemprof
