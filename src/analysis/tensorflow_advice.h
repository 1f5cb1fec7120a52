// What a recording of TensorFlow gives evidence for: tf.function, mixed precision, tf.data,
// allocator settings. No evidence, no advice; a question without an answer says why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// One recommendation. `bytes` is what is at stake: held at the peak by what the advice is about,
/// or the part of it that can go at most; `title` says which.
struct Advice {
  std::string kind;  ///< "tf_function", "mixed_precision", "tf_data", "allocator"
  std::string title, fix;
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> evidence;  ///< bytes, by name
};

struct AdviceReport {
  bool applies = false;        ///< false: the recording has no allocation of TensorFlow's
  std::vector<Advice> advice;  ///< the most bytes first
  std::vector<std::pair<std::string, std::string>> unknown;  ///< kind -> why
};

/// Looks at what the stacks held at the peak of each of TensorFlow's memories, and at the names of
/// all ops that allocated. Holders below a tenth of the peak, or below 1 MiB, are no evidence.
AdviceReport advise_tensorflow(const Analysis& analysis, const Tables& tables);

/// True for the cast at the beginning of a layer: what a policy of mixed precision adds to a graph.
/// Losses and metrics cast labels in any case.
bool is_layer_cast(std::string_view op);

}  // namespace gpumemprof
