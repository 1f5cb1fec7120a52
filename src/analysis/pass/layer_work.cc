#include "analysis/pass/layer_work.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/categories/torch_frames.h"

namespace gpumemprof {
namespace {

/// What Keras' and PyTorch's own frames say; the innermost that says something counts. TensorFlow's
/// are looked at with its names (op_names.h).
std::string_view part_of_frame(std::string_view file, std::string_view function) {
  if (file.ends_with("/keras/src/layers/layer.py")) {
    if (is_called(function, "Layer.add_weight")) return "parameters";
    if (is_called(function, "Layer.__call__")) return "forward";
  }
  // What a model's first call in a graph has put off until its end.
  if (file.ends_with("/keras/src/backend/common/variables.py") &&
      is_called(function, "initialize_all_variables"))
    return "parameters";
  const auto is_in = [&](std::string_view part) { return file.find(part) != file.npos; };
  // The entries to the engine; autograd/function.py runs in a forward pass as well.
  if (file.ends_with("/torch/autograd/__init__.py") || file.ends_with("/torch/autograd/graph.py")) {
    return "gradient";
  }
  if (is_in("/keras/src/optimizers/") || is_in("/torch/optim/")) return "optimizer";
  return {};
}

/// Whether the block is a layer's own variable, which an optimizer may have put into a new one: its
/// name is in the layer's scope, that of an optimizer's state is in the optimizer's.
bool is_parameter(const Work& work) {
  return !work.layer.empty() && !is_optimizer_scope(work.layer) &&
         work.variable.size() > work.layer.size() &&
         work.variable.starts_with(work.layer) && work.variable[work.layer.size()] == '/';
}

/// `work` is what the reader says of the stack.
LayerWork where_of(const Tables& tables, uint32_t stack, const Work& work, WorkReader* reader) {
  if (tables.strings.get(tables.stacks.frame_of(stack).file) == kInternalFile) {
    return {.layer = {}, .part = "framework's own"};
  }
  LayerWork out;
  bool is_module = false;  // PyTorch's, which is named only while it is called
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    if (reader->is_silent(frame.file)) continue;
    const std::string_view file = tables.strings.get(frame.file);
    const std::string_view function = tables.strings.get(frame.function);
    if (file == kOperationFile && function == kMadeBy) break;  // what follows did not allocate
    // Keras' layers are modules too where it runs on PyTorch: its own name of one says more.
    const bool is_layer = file == kLayerScopeFile;
    if (is_layer || file == kModuleFile) {
      if (out.layer.empty() || (is_layer && is_module)) out.layer = function, is_module = !is_layer;
    }
    if (file == kBackwardFile && out.part.empty()) out.part = "gradient";
    if (out.part.empty()) out.part = part_of_frame(file, function);
  }
  if (out.layer.empty()) out.layer = work.layer;
  if (is_parameter(work)) return {.layer = work.layer, .part = "parameters"};
  if (work.operation == "VarHandleOp") return {.layer = out.layer, .part = "variable handles"};
  // A layer that is called makes its parameters first; the name of an operation says more than the
  // frames around it.
  if (out.part != "parameters" && work.phase != Phase::kUnknown) out.part = phase_name(work.phase);
  if (out.part.empty()) out.part = phase_name(is_module ? Phase::kForward : Phase::kUnknown);
  return out;
}

}  // namespace

bool may_have_layers(const Tables& tables) {
  // An operation's name, and what else WorkReader knows of a layer, comes with kOperationFile.
  const auto is_there = [&](std::string_view file) { return tables.strings.find(file).has_value(); };
  return is_there(kOperationFile) || is_there(kLayerScopeFile) || is_there(kModuleFile);
}

LayerWork layer_work_of(const Tables& tables, uint32_t stack) {
  WorkReader reader(tables);
  return layer_work_of(tables, stack, &reader);
}

LayerWork layer_work_of(const Tables& tables, uint32_t stack, WorkReader* reader) {
  return where_of(tables, stack, reader->of(stack), reader);
}

StackWork stack_work_of(const Tables& tables, uint32_t stack, WorkReader* reader) {
  StackWork out{.work = reader->of(stack), .where = {}};
  out.where = where_of(tables, stack, out.work, reader);
  const bool is_state = out.where.part == phase_name(Phase::kOptimizer);
  if (is_state && !out.work.layer.empty()) out.where.layer = out.work.layer;
  return out;
}

std::vector<WorkHolder> group_by_work(const std::vector<Holder>& holders, const Tables& tables) {
  using Key = std::tuple<Phase, std::string_view, ExecutionMode, std::string_view,
                         std::string_view, bool>;
  std::map<Key, WorkHolder> groups;
  WorkReader reader(tables);
  for (const Holder& holder : holders) {
    const auto [work, where] = stack_work_of(tables, holder.stack, &reader);
    const std::string_view function = work.function.empty() ? work.xla_cluster : work.function;
    const bool is_xla = !work.xla_cluster.empty();
    WorkHolder& group =
        groups[{work.phase, where.part, work.mode, where.layer, function, is_xla}];
    group.phase = work.phase, group.part = where.part, group.mode = work.mode;
    group.layer = where.layer, group.function = function, group.is_xla = is_xla;
    group.bytes += holder.bytes, group.count += holder.count;
  }
  std::vector<WorkHolder> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  std::ranges::stable_sort(out, std::ranges::greater(), &WorkHolder::bytes);
  return out;
}

}  // namespace gpumemprof
