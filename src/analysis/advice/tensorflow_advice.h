// What a recording of TensorFlow gives evidence for: tf.function, mixed precision, tf.data,
// allocator settings. No advice without evidence; unknown answers have a reason.
#pragma once

#include <string_view>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

/// Looks at what the stacks held at the peak of each of TensorFlow's memories, and at the names of
/// all ops that allocated. Holders below a tenth of the peak, or below 1 MiB, are no evidence.
AdviceReport advise_tensorflow(const Analysis& analysis, const Tables& tables);

/// True for the cast at the beginning of a layer: what a policy of mixed precision adds to a graph.
/// Losses and metrics cast labels in any case.
bool is_layer_cast(std::string_view op);

}  // namespace gpumemprof
