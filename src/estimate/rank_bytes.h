// What one rank holds at its peak, by category and part.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "estimate/closed_form.h"

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

}  // namespace gpumemprof
