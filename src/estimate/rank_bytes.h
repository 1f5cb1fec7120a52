// What one rank holds at its peak, by category and part.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "estimate/closed_form.h"
#include "estimate/parameters.h"

namespace gpumemprof {

struct RankBytes {
  std::string name;  ///< "stage 1 of 4"
  std::map<std::pair<Category, std::string>, double> parts;

  void add(Category category, const std::string& part, double bytes) {
    if (bytes > 0) parts[{category, part}] += bytes;
  }
  double total() const {
    double sum = 0;
    for (const auto& [key, bytes] : parts) sum += bytes;
    return sum;
  }
};

/// The largest of the moments of a step: the loss, a layer computed again, the end of the backward
/// pass, the optimizer.
RankBytes training_bytes(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage);
RankBytes inference_bytes(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage);

/// Elements on a rank. Experts are counted apart: they are replicated over another group.
struct HeldElements {
  double dense = 0, expert = 0;
  double matrices = 0;  ///< of both, those that are not vectors
  double factored =
      0;  ///< rows + columns of the matrices: what Adafactor keeps, and all of a vector

  double all() const { return dense + expert; }
  HeldElements& operator+=(const HeldElements& other);
};
HeldElements held_elements(const WeightGroups& groups, const ModelShape& shape,
                           const TrainingSetup& setup);
/// All that the rank of this stage holds; a tied output layer is a copy where the stages differ.
HeldElements held_by_rank(const ModelShape& shape, const TrainingSetup& setup,
                          const RankContents& rank);

/// Bytes on this rank, in all.
struct StateBytes {
  double weights = 0, gradients = 0, optimizer = 0;
  double buckets = 0;   ///< DistributedDataParallel's, as long as it lives: from the first step on
  double gathered = 0;  ///< weights of the layers in use, where they are split over ranks
  double casts = 0;  ///< low-precision copies under autocast, from forward to the end of backward
  double step_temporary = 0;  ///< while the optimizer works
  bool gradients_stay =
      false;  ///< they are there from the first step on, not from backward to the optimizer only
};
StateBytes state_bytes(const ModelShape& shape, const TrainingSetup& setup,
                       const RankContents& rank);

}  // namespace gpumemprof
