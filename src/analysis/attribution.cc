#include "analysis/attribution.h"

#include <algorithm>

#include "analysis/library_workspace.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

bool is_in(std::string_view file, std::string_view part) {
  return file.find(part) != std::string_view::npos;
}

/// What frames of code say, gathered from the innermost outwards.
struct Code {
  bool is_optimizer = false, is_data = false, is_checkpoint = false, is_setup = false;
  bool is_engine = false;

  void look(std::string_view file, std::string_view function) {
    if (!is_in(file, "/torch/")) return;
    // Every optimizer's step runs in the wrapper that torch.optim.Optimizer puts around it.
    is_optimizer |= file.ends_with("/torch/optim/optimizer.py") &&
                    function.find("profile_hook_step") != std::string_view::npos;
    // What autograd's engine calls between nodes and after the last: a model in shards makes
    // gradients there.
    is_engine |= file.ends_with("/torch/autograd/graph.py") && function == "_engine_run_backward";
    is_data |= is_in(file, "/torch/utils/data/dataloader.py") && function.ends_with("__next__");
    is_checkpoint |= file.ends_with("/torch/utils/checkpoint.py");
    is_setup |=
        is_in(file, "/torch/nn/modules/") &&
        (function.ends_with("__init__") || function.ends_with("reset_parameters") ||
         function.ends_with("Module._apply") || function.ends_with("initialize_parameters"));
  }
};

}  // namespace

const char* work_phase_name(WorkPhase phase) {
  switch (phase) {
    case WorkPhase::kForward:
      return "forward";
    case WorkPhase::kBackward:
      return "backward";
    case WorkPhase::kOptimizer:
      return "optimizer";
    case WorkPhase::kDataLoading:
      return "data loading";
    case WorkPhase::kEvaluation:
      return "evaluation";
    default:
      return "";
  }
}

Attribution attribution_of(const Tables& tables, uint32_t stack) {
  Attribution out;
  Code code;
  bool has_gradients = true;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
    const std::string_view file = tables.strings.get(frame.file);
    const std::string_view function = tables.strings.get(frame.function);
    if (frame.line != 0 || !file.starts_with('<')) {
      code.look(file, function);
    } else if (file == kModuleFile) {
      out.module = function;
    } else if (file == kBackwardFile) {
      out.node = function;
    } else if (file == kModeFile) {
      has_gradients = false;
    } else if (file == kPhaseFile) {
      out.user_phase = function;
    }
  }
  out.is_in_setup = code.is_setup;
  out.is_workspace = is_library_workspace(tables, stack);
  if (!out.node.empty() || code.is_engine) {
    // Backward itself runs without gradients, unless its own graph is wanted.
    out.phase = WorkPhase::kBackward;
    out.is_recomputed = has_gradients && code.is_checkpoint;
  } else if (code.is_optimizer) {
    out.phase = WorkPhase::kOptimizer;
  } else if (code.is_data) {
    out.phase = WorkPhase::kDataLoading;
  } else if (!out.module.empty()) {
    // Checkpointing runs a forward without gradients, to repeat it with them.
    const bool is_forward = has_gradients || code.is_checkpoint;
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

}  // namespace gpumemprof
