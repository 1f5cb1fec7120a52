// The weights of a model, matrix by matrix, and which of them a rank holds.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/model_shape.h"

namespace gpumemprof {

enum class WeightSplit : uint8_t {
  kWhole,     ///< every rank of a tensor-parallel group has it
  kTensor,    ///< split over the tensor-parallel group
  kKeyValue,  ///< the same, but no finer than the heads of keys and values: beyond that ranks share
              ///< them
  kExpert,    ///< experts are split over the expert-parallel group, their matrices over their own
              ///< tensor-parallel one
};

/// `copies` matrices of rows × columns (a vector: columns 1).
struct WeightGroup {
  const char* name = "";  ///< "attention", "mlp", "experts", "norms", …
  uint64_t rows = 0, columns = 1, copies = 1;
  WeightSplit split = WeightSplit::kWhole;

  uint64_t elements() const { return rows * columns * copies; }
};

using WeightGroups = std::vector<WeightGroup>;

/// Of one layer of the decoder, or of the only stack; of the encoder where there is one.
WeightGroups layer_weights(const ModelShape& shape, uint64_t layer);
WeightGroups encoder_layer_weights(const ModelShape& shape, uint64_t layer);
/// What is before the first layer, and behind the last. A tied output layer is in neither.
WeightGroups embedding_weights(const ModelShape& shape);
WeightGroups output_weights(const ModelShape& shape);
/// The matrix that a tied output layer shares with the embedding.
WeightGroup tied_output(const ModelShape& shape);

/// As a double, which cannot wrap: for judging whether a configuration is believable.
double rough_parameter_count(const ModelShape& shape);

}  // namespace gpumemprof
