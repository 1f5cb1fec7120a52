#include "analysis/pass/op_names.h"

#include <algorithm>
#include <array>

#include "recording/operation_lines.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

/// "MatMul_1" -> "MatMul": TensorFlow numbers names that it has given out before.
std::string_view without_copy_number(std::string_view part) {
  const size_t digits = part.find_last_not_of("0123456789");
  const bool is_numbered =
      digits != part.npos && digits + 1 < part.size() && part[digits] == '_' && digits > 0;
  return is_numbered ? part.substr(0, digits) : part;
}

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What calls of functions put before the names that are inside.
bool is_call(std::string_view part) {
  return is_one_of(without_copy_number(part),
                   std::to_array<std::string_view>({"StatefulPartitionedCall", "PartitionedCall",
                                                    "while", "cond", "body", "true_fn", "false_fn",
                                                    "ArithmeticOptimizer", "ConstantFolding"}));
}

/// The scope in which Keras' optimizers update variables: their class's name in snake case (Keras
/// 3), or as it is (Keras 2).
bool is_optimizer(std::string_view part) {
  std::string word(without_copy_number(part));
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return is_one_of(
      std::string_view(word),
      std::to_array<std::string_view>({"adadelta", "adafactor", "adagrad", "adam", "adamax",
                                       "adamw", "ftrl", "lamb", "lion", "loss_scale_optimizer",
                                       "muon", "nadam", "rmsprop", "sgd"}));
}

/// Types that only tf.data has.
bool is_input(std::string_view part) {
  const std::string_view type = without_copy_number(part);
  return type.find("Dataset") != type.npos || type.starts_with("Iterator") ||
         type.starts_with("Optional") || type == "optional" || type.ends_with("Iterator") ||
         type.ends_with("IteratorV2") || type.ends_with("IteratorV3");
}

/// Scopes that one operation makes around those which it consists of, in Keras and TensorFlow
/// itself; a layer is what stands before them.
bool is_inside_operation(std::string_view part) {
  const std::string_view type = without_copy_number(part);
  if (type.ends_with("Op") || type.ends_with("WithLogits")) return true;  // ReadVariableOp, …
  return is_one_of(
             type,
             std::to_array<std::string_view>(
                 {"Add",       "BiasAdd",    "BroadcastTo",      "Cast",     "ConcatV2", "Conv2D",
                  "Exp",       "ExpandDims", "FusedBatchNormV3", "GatherV2", "MatMul",   "MaxPool",
                  "Maximum",   "Mean",       "Minimum",          "Mul",      "Pad",      "Pow",
                  "Relu",      "Reshape",    "Sigmoid",          "Slice",    "Softmax",  "Sqrt",
                  "Square",    "Squeeze",    "StridedSlice",     "Sub",      "Sum",      "Tanh",
                  "Tensordot", "Tile",       "Transpose"})) ||
         is_one_of(type, std::to_array<std::string_view>(
                             {"add", "batchnorm", "concat", "convolution", "div_no_nan", "einsum",
                              "matmul", "moments", "mul", "range", "split", "strided_slice", "sub",
                              "transpose", "truediv"}));
}

struct Parts {
  std::string_view rest;
  /// The next component, or empty at the end.
  std::string_view next() {
    const size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    rest = slash == rest.npos ? std::string_view{} : rest.substr(slash + 1);
    return part;
  }
  std::string_view peek() const { return rest.substr(0, rest.find('/')); }
};

std::string_view without_last(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view{} : path.substr(0, slash);
}

std::string_view last_part(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

/// The operation itself goes, then what stands between it and the layer.
std::string_view layer_of(std::string_view scope_and_operation) {
  std::string_view layer = without_last(scope_and_operation);
  while (!layer.empty() && is_inside_operation(last_part(layer))) layer = without_last(layer);
  return layer;
}

/// "__inference_train_step_123" -> "train_step"; empty for another name.
std::string_view function_of(std::string_view name) {
  constexpr std::string_view kCall = "__inference_";
  return name.starts_with(kCall) ? without_copy_number(name.substr(kCall.size())) : std::string_view{};
}

/// The part of the work that code of TensorFlow or Keras is, by its file.
Phase phase_of_file(std::string_view file) {
  const auto is_in = [&](std::string_view part) { return file.find(part) != file.npos; };
  if (file.ends_with("/framework/func_graph.py")) return Phase::kCompilation;
  if (is_in("/tensorflow/python/data/")) return Phase::kInput;
  if (is_in("/keras/src/trainers/data_adapters/")) return Phase::kInput;
  if (is_in("/keras/src/optimizers/") || is_in("/keras/optimizers/")) return Phase::kOptimizer;
  if (file.ends_with("/eager/backprop.py")) return Phase::kGradient;
  return Phase::kUnknown;
}

}  // namespace

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kGradient:
      return "gradient";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kInput:
      return "input pipeline";
    case Phase::kCompilation:
      return "graph compilation";
    case Phase::kUnknown:
      break;
  }
  return "unknown";
}

const char* mode_name(ExecutionMode mode) {
  switch (mode) {
    case ExecutionMode::kEager:
      return "eager";
    case ExecutionMode::kGraph:
      return "graph";
    case ExecutionMode::kUnknown:
      break;
  }
  return "unknown";
}

OperationName parse_operation_name(std::string_view name) {
  OperationName out;
  if (name.starts_with("cluster_")) out.xla_cluster = name.substr(0, name.find('/'));
  out.function = function_of(name);
  out.has_scope = name.find('/') != name.npos;
  Parts parts{name};
  while (is_call(parts.peek()) && parts.rest.find('/') != parts.rest.npos) parts.next();
  const std::string_view first = without_copy_number(parts.peek());
  if (first == "gradient_tape" || first == "gradients") {
    parts.next();
    out.phase = Phase::kGradient;
    out.layer = layer_of(parts.rest);
  } else if (is_optimizer(parts.peek()) && parts.rest.find('/') != parts.rest.npos) {
    out.phase = Phase::kOptimizer;
  } else if (is_input(parts.peek()) || is_input(last_part(parts.rest))) {
    out.phase = Phase::kInput;
  } else if (last_part(parts.rest).starts_with("ResourceApply")) {
    out.phase = Phase::kOptimizer;
  } else {
    out.layer = layer_of(parts.rest);
    if (!out.layer.empty() && out.xla_cluster.empty()) out.phase = Phase::kForward;
  }
  return out;
}

bool is_optimizer_scope(std::string_view scope) {
  return is_optimizer(scope.substr(0, scope.find('/')));
}

/// What the Python frames of a stack say; the innermost that says something counts.
struct WorkReader::FrameFacts {
  Phase phase = Phase::kUnknown;
  bool has_python = false;     // frames of the thread itself, not those that made the operation
  bool runs_function = false;  // the program called a graph
  std::string_view variable, layer, cluster;  // of the innermost operation
  std::string_view scope;  // Keras' own path of the innermost layer that made it
};

WorkReader::FrameFacts WorkReader::look_at_frames(uint32_t stack) {
  FrameFacts facts;
  bool is_making = false;  // frames of the code that made the operation, which ran earlier
  for (; stack != 0; stack = tables_.stacks.node(stack).parent) {
    const Frame& frame = tables_.stacks.frame_of(stack);
    if (is_silent(frame.file)) {
      facts.has_python |= !is_making && frame.line != 0 && frame.file != 0;
      continue;
    }
    const std::string_view file = tables_.strings.get(frame.file);
    is_making |= file == kOperationFile && tables_.strings.get(frame.function) == kMadeBy;
    if (file == kLayerScopeFile && !is_making && facts.scope.empty())
      facts.scope = tables_.strings.get(frame.function);
    if (file == kVariableFile) facts.variable = tables_.strings.get(frame.function);
    if (file == kLayerFile) facts.layer = tables_.strings.get(frame.function);
    if (file == kClusterFile) facts.cluster = tables_.strings.get(frame.function);
    if (frame.line == 0 || file.empty()) continue;
    facts.has_python |= !is_making;
    // What called a graph says nothing of what is in it.
    if (facts.runs_function) continue;
    facts.runs_function = !is_making && file.ends_with("/polymorphic_function/atomic_function.py");
    const Phase phase = phase_of_file(file);
    if (is_making && phase == Phase::kCompilation) continue;
    if (facts.phase == Phase::kUnknown && !facts.runs_function) facts.phase = phase;
  }
  return facts;
}

/// Whether a stack of nothing but an operation says that its thread ran no Python.
bool WorkReader::may_have_python() {
  if (may_have_python_ == kNotAsked) {
    const bool may = tables_.processes.empty() ||
                     std::ranges::any_of(tables_.processes, [this](const Process& process) {
                       ++steps_;
                       return !process.stacks.starts_with("none") && process.stacks != "native";
                     });
    may_have_python_ = may ? kYes : kNo;
  }
  return may_have_python_ == kYes;
}

bool WorkReader::is_silent(uint32_t file) {
  if (file >= tables_.strings.size()) file = 0;
  if (file >= silent_.size()) silent_.resize(tables_.strings.size());
  if (silent_[file] == kNotAsked) {
    const std::string_view name = tables_.strings.get(file);
    // Every file that phase_of_file(), look_at_frames() and layer_work.cc ask for has one of these.
    const bool speaks =
        name.starts_with('<') ||
        std::ranges::any_of(
            std::to_array<std::string_view>({"/torch/", "/tensorflow/", "/keras/", "/framework/",
                                             "/eager/", "/polymorphic_function/"}),
            [&](std::string_view part) { return name.find(part) != name.npos; });
    silent_[file] = speaks ? kNo : kYes;
    ++steps_;
  }
  return silent_[file] == kYes;
}

Work WorkReader::of(uint32_t stack) {
  const Tables& tables = tables_;
  Work work;
  const StackTable::Node& innermost = tables.stacks.node(stack);
  if (innermost.depth == 0) return work;
  const Frame& frame = tables.stacks.frame(innermost.frame);
  const bool is_named = tables.strings.get(frame.file) == kOperationFile;
  const FrameFacts facts = look_at_frames(stack);
  work.phase = facts.phase;
  if (is_named) {
    work.operation = tables.strings.get(frame.function);
    const OperationName name = parse_operation_name(work.operation);
    if (name.phase != Phase::kUnknown) work.phase = name.phase;
    work.layer = name.layer;
    work.xla_cluster = name.xla_cluster;
    work.function = name.function;
    work.variable = facts.variable;
    // TensorFlow numbers scopes anew: the layer conv2d is "conv2d_1" in a second trace, which may
    // be another layer's own name.
    if (!name.layer.empty() && !facts.scope.empty()) work.layer = facts.scope;
    if (!facts.variable.empty() || !facts.layer.empty()) work.layer = facts.layer;
    if (!facts.cluster.empty()) {
      work.xla_cluster = facts.cluster;
      work.function = function_of(facts.cluster);
    }
    // Without Python frames it is a thread of an executor, which eager execution does not use:
    // where there are stacks at all.
    const bool is_graph = name.has_scope || !name.function.empty() || !name.xla_cluster.empty() ||
                          facts.runs_function || (!facts.has_python && may_have_python());
    work.mode = is_graph           ? ExecutionMode::kGraph
                : facts.has_python ? ExecutionMode::kEager
                                   : ExecutionMode::kUnknown;
  }
  return work;
}

}  // namespace gpumemprof
