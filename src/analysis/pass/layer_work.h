// Which layer of a model memory was allocated for, and for what part of its work: the common key by
// which runs of one model under different frameworks are compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/pass/op_names.h"
#include "trace/label_frames.h"
#include "trace/live_state.h"
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
/// Whether a stack there can have a layer; no look at the stacks.
bool may_have_layers(const Tables& tables);
/// The same of many stacks; `reader` is one of `tables`.
LayerWork layer_work_of(const Tables& tables, uint32_t stack, WorkReader* reader);

/// What a report or a diff on TensorFlow alone says: as layer_work_of(), but an optimizer's state is
/// of the layer whose variable it belongs to, where that is known.
struct StackWork {
  Work work;
  LayerWork where;
};
StackWork stack_work_of(const Tables& tables, uint32_t stack, WorkReader* reader);

/// Bytes of one layer for one part of its work.
struct WorkHolder {
  Phase phase;
  std::string part;  ///< as LayerWork's
  ExecutionMode mode;
  std::string layer;     ///< empty where none is known
  std::string function;  ///< or the XLA cluster; empty where the name is not of a call
  bool is_xla;           ///< XLA compiled it
  uint64_t bytes;
  uint64_t count;
};
/// Adds up `holders`, largest first. The sums are those of `holders`: nothing is left out.
std::vector<WorkHolder> group_by_work(const std::vector<Holder>& holders, const Tables& tables);

}  // namespace gpumemprof
