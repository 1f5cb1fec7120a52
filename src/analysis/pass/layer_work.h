// Which layer of a model memory was allocated for, and for what part of its work: the common key by
// which runs of one model under different frameworks are compared.
#pragma once

#include <string_view>

#include "analysis/pass/op_names.h"
#include "trace/label_frames.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Views point into the tables, or are constants.
struct LayerWork {
  /// As the program names it ("sequential/dense"): Keras' own path; else the scope in the name of
  /// an operation, as TensorFlow numbered it ("sequential_1/dense_1"). Empty: none is known.
  std::string_view layer;
  /// "parameters" (made by Keras' Layer.add_weight), "forward", "gradient", "optimizer", "input
  /// pipeline", "graph compilation"; "variable handles", by which TensorFlow finds a variable;
  /// "framework's own" (kInternalFile), which no layer has; "unknown" where neither frames nor
  /// names say it.
  std::string_view part;
};
LayerWork layer_work_of(const Tables& tables, uint32_t stack);
/// The same of many stacks; `reader` is one of `tables`.
LayerWork layer_work_of(const Tables& tables, uint32_t stack, WorkReader* reader);

}  // namespace gpumemprof
