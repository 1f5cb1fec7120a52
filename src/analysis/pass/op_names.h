// What TensorFlow's name of an operation says of the work that memory was allocated for: the phase
// of a training step, the layer, eager or graph. The name is the innermost frame of a stack
// (docs/recording-format.md); where it does not say enough, the Python frames around it do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/tables.h"

namespace gpumemprof {

enum class Phase : uint8_t { kUnknown, kForward, kGradient, kOptimizer, kInput, kCompilation };
/// "forward", "gradient", "optimizer", "input pipeline", "graph compilation"; "unknown".
const char* phase_name(Phase phase);

enum class ExecutionMode : uint8_t { kUnknown, kEager, kGraph };
/// "eager", "graph"; "unknown".
const char* mode_name(ExecutionMode mode);

/// What a name alone says; views point into the name. `layer` is the scope as TensorFlow wrote it
/// ("sequential_1/dense_1"): a second trace of one layer carries another number. Empty where the
/// name has no scope.
struct OperationName {
  Phase phase = Phase::kUnknown;
  std::string_view layer;
  std::string_view xla_cluster;  ///< "cluster_0_1": operations that XLA compiled together
  /// Of "__inference_train_step_7" the "train_step": the call of a graph, with what it copies; all
  /// of the graph where jit_compile gave it to XLA.
  std::string_view function;
  bool has_scope = false;  ///< so it ran in a graph: eager names are types alone
};
OperationName parse_operation_name(std::string_view name);
/// Whether the first part of a scope is that in which an optimizer of Keras has its variables.
bool is_optimizer_scope(std::string_view scope);

/// The work that a stack was allocated for.
struct Work {
  Phase phase = Phase::kUnknown;
  ExecutionMode mode = ExecutionMode::kUnknown;
  std::string_view operation;  ///< the name; empty where the stack has none
  std::string_view layer;
  std::string_view xla_cluster;
  std::string_view function;
  /// That the operation writes, as TensorFlow's own graphs tell (recording/operation_lines.h). Then
  /// `layer` is the variable's scope, and of an optimizer's variable that of the one that it is the
  /// state of; empty where it is not known.
  std::string_view variable;
};
/// Answers for many stacks; each file's name is used once. Not thread-safe; `tables` must
/// outlive it and the answers, whose views point into it.
class WorkReader {
 public:
  explicit WorkReader(const Tables& tables) : tables_(tables) {}
  Work of(uint32_t stack);
  /// Names of files, and processes, that were looked at so far.
  uint64_t steps() const { return steps_; }
  /// Whether frames of the file (a StringTable id) say no more of the work than that Python ran.
  bool is_silent(uint32_t file);

 private:
  struct FrameFacts;
  FrameFacts look_at_frames(uint32_t stack);
  bool may_have_python();

  enum Known : uint8_t { kNotAsked, kYes, kNo };
  const Tables& tables_;
  std::vector<Known> silent_;  // by file
  Known may_have_python_ = kNotAsked;
  uint64_t steps_ = 0;
};

}  // namespace gpumemprof
