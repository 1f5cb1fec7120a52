#include "analysis/categories/attribution.h"

#include <algorithm>

#include "analysis/categories/torch_frames.h"
#include "base/path_parts.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

/// What calls the innermost frames: the first of these that is met.
enum class Caller : uint8_t { kNothing, kModule, kOptimizer, kData };

/// What frames say, gathered from the innermost outwards.
struct Reading {
  Attribution out;
  Caller caller = Caller::kNothing;
  bool is_checkpoint = false, is_engine = false, is_in_closure = false, is_compiled = false;
  std::vector<CodeFrame> frames;  // of code

  void look(std::string_view file, std::string_view function) {
    if (path_has(file, "/torch/")) look_at_torch(file, function);
    // A class's own __call__ leaves Module._call_impl out.
    out.is_computed |= is_called(function, "__call__") && !frames.empty() &&
                       is_called(frames.back().function, "forward");
    out.is_kv_update |=
        path_ends_with(file, "/transformers/cache_utils.py") && is_called(function, "update");
    frames.push_back({file, function});
  }

 private:
  bool is_innermost_python() const {
    return std::ranges::none_of(
        frames, [](const CodeFrame& inner) { return inner.file.ends_with(".py"); });
  }

  void look_at_torch(std::string_view file, std::string_view function) {
    is_engine |= runs_backward(file, function);
    // Every optimizer's step runs in the wrapper that torch.optim.Optimizer puts around it.
    if (is_torch_file(file, "optim/optimizer.py") &&
        (function.contains("profile_hook_step") || function == "wrapper")) {
      out.is_in_step = true;
      is_in_closure |= is_in_step_closure(frames, file, out.has_gradients);
      if (caller == Caller::kNothing && !is_in_closure) caller = Caller::kOptimizer;
    } else if (runs_module(file, function)) {
      if (caller == Caller::kNothing) caller = Caller::kModule;
    } else if (loads_data(file, function)) {
      // Transformations of data may be modules; what they make is data all the same.
      if (caller != Caller::kOptimizer) caller = Caller::kData;
    }
    // Its reducer is native: it makes the buckets when it is made, and anew after the first step.
    out.is_reducer |= is_torch_file(file, "nn/parallel/distributed.py") &&
                      (is_called(function, "DistributedDataParallel._ddp_init_helper") ||
                       is_called(function, "DistributedDataParallel._pre_forward")) &&
                      is_innermost_python();
    out.is_collective |= path_has(file, "/torch/distributed/") && is_innermost_python();
    out.is_computed |=
        is_torch_file(file, "autograd/function.py") && is_called(function, "Function.apply");
    is_checkpoint |= is_torch_file(file, "utils/checkpoint.py");
    is_compiled |=
        path_has(file, "/torch/_functorch/") && is_called(function, "CompiledFunction.forward");
    out.is_weight_copy |= (is_torch_file(file, "nn/parameter.py") &&
                           is_called(function, "Parameter.__deepcopy__")) ||
                          (is_torch_file(file, "optim/swa_utils.py") &&
                           is_called(function, "AveragedModel.__init__")) ||
                          is_torch_file(file, "distributed/checkpoint/_state_dict_stager.py") ||
                          is_torch_file(file, "distributed/_state_dict_utils.py");
    out.is_in_setup |=
        path_has(file, "/torch/nn/modules/") &&
        (function.ends_with("__init__") || function.ends_with("reset_parameters") ||
         is_called(function, "Module._apply") || function.ends_with("initialize_parameters"));
  }
};

}  // namespace

const char* work_phase_name(WorkPhase phase) {
  static constexpr const char* kNames[] = {"",          "forward",      "backward",
                                           "optimizer", "data loading", "evaluation"};
  const auto index = static_cast<size_t>(phase);
  return kNames[index < std::size(kNames) ? index : 0];
}

Attribution attribution_of(const Tables& tables, uint32_t stack) {
  Reading code;
  Attribution& out = code.out;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    const std::string_view file = tables.strings.get(frame.file);
    const std::string_view function = tables.strings.get(frame.function);
    if (frame.line != 0 || !file.starts_with('<')) {
      code.look(file, function);
    } else if (file == kModuleFile) {
      out.module = function;
    } else if (file == kBackwardFile) {
      out.node = function;
    } else if (file == kModeFile) {
      out.has_gradients = false;
    } else if (file == kPhaseFile) {
      out.user_phase = function;
    }
  }
  out.is_workspace = is_library_workspace(tables, stack);
  if (!out.node.empty() || code.is_engine) {
    // Backward itself runs without gradients, unless its own graph is wanted.
    out.phase = WorkPhase::kBackward;
    out.is_recomputed = out.has_gradients && code.is_checkpoint;
  } else if (code.caller == Caller::kOptimizer) {
    out.phase = WorkPhase::kOptimizer;
  } else if (code.caller == Caller::kData) {
    out.phase = WorkPhase::kDataLoading;
  } else if (!out.module.empty()) {
    // Checkpointing runs a forward without gradients, to repeat it with them. A compiled one is a
    // function of autograd's, which turns them off within and is called only where they are on.
    const bool is_forward = out.has_gradients || code.is_checkpoint || code.is_compiled;
    out.phase = is_forward ? WorkPhase::kForward : WorkPhase::kEvaluation;
  }
  return out;
}

const Attribution& Attributions::of(uint32_t stack) {
  if (stack >= index_.size())
    index_.resize(std::max<size_t>(stack + 1, tables_.stacks.stack_count()));
  uint32_t& index = index_[stack];
  if (index == 0) {
    known_.push_back(attribution_of(tables_, stack));
    index = static_cast<uint32_t>(known_.size());
  }
  return known_[index - 1];
}

std::string_view module_of_storage(std::string_view name) {
  if (const size_t of = name.rfind(" of "); of != name.npos) name = name.substr(of + 4);
  if (const size_t more = name.find(" and "); more != name.npos) name = name.substr(0, more);
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

bool is_of_several_gradients(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t end = name.find_first_not_of(kDigits);
  return end != 0 && end != name.npos && name.substr(end).starts_with(" gradients");
}

}  // namespace gpumemprof
