#include "analysis/leaks/leak_evidence.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/categories/attribution.h"
#include "base/path_parts.h"
#include "trace/label_frames.h"
#include "trace/module_path.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

/// More than half of what grows.
constexpr double kMost = 0.5;

bool any_frame(const Tables& tables, uint32_t stack, auto is_it) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return is_it(tables.strings.get(frame.file), tables.strings.get(frame.function));
  }) != 0;
}

bool is_backward(std::string_view file, std::string_view function) {
  return file == kBackwardFile || function == "_engine_run_backward";
}

bool is_module(std::string_view file, std::string_view) {
  return file == kModuleFile || path_has(file, "/torch/nn/modules/");
}

/// Made by the optimizer itself. A step may call a closure: the program's code and modules in there
/// are no optimizer's.
bool is_of_optimizer(const Tables& tables, uint32_t stack) {
  if (attribution_of(tables, stack).phase == WorkPhase::kOptimizer) return true;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    const std::string_view file = tables.strings.get(frame.file);
    if (is_module(file, {}) || (frame.line != 0 && is_user_file(file))) return false;
    if (path_has(file, "/torch/optim/")) return true;
  }
  return false;
}

bool is_lbfgs(std::string_view file, std::string_view) {
  return file.ends_with("/torch/optim/lbfgs.py");
}

bool is_graph_building(std::string_view file, std::string_view) {
  return path_ends_with(file, "/tensorflow/python/framework/func_graph.py");
}

/// Of a tf.function: tracing it, running what was traced, or an operation of its graph.
bool is_function_call(std::string_view file, std::string_view function) {
  return is_graph_building(file, function) || (file == kOperationFile && function == kMadeBy) ||
         path_has(file, "/tensorflow/python/eager/polymorphic_function/");
}

/// An object of TensorFlow's runtime that an eager operation made: its kernel.
bool is_of_kernel(const Tables& tables, uint32_t stack) {
  const auto is_internal = [](std::string_view file, std::string_view) {
    return file == kInternalFile;
  };
  return any_frame(tables, stack, is_internal) && !any_frame(tables, stack, is_function_call);
}

bool is_mode(std::string_view file, std::string_view) { return file == kModeFile; }

/// PyTorch calls a Function's forward without gradients, and gives its results a graph.
bool is_custom_function(std::string_view file, std::string_view function) {
  return file.ends_with("/torch/autograd/function.py") && function.ends_with("apply");
}

/// Gradients are off in a backward pass, unless its results shall have a graph of their own.
bool is_of_create_graph(const Tables& tables, uint32_t stack) {
  return any_frame(tables, stack, is_backward) && !any_frame(tables, stack, is_mode) &&
         !attribution_of(tables, stack).is_recomputed;
}

double share_of_stacks(const Leak& leak, auto is_it) {
  double of_it = 0;
  for (const LeakStack& stack : leak.stacks) {
    if (is_it(stack.stack)) of_it += stack.growth.bytes_a_step;
  }
  return leak.bytes_a_step > 0 ? of_it / leak.bytes_a_step : 0;
}

double share(const Leak& leak, const Tables& tables, auto is_it) {
  return share_of_stacks(leak, [&](uint32_t s) { return any_frame(tables, s, is_it); });
}

bool makes_models(const Leak& leak, const Tables& tables) {
  return share_of_stacks(leak, [&](uint32_t s) { return is_in_setup(tables, s); }) > kMost;
}

/// Nearly all that it keeps; a loss or the like may be beside them.
bool are_first_gradients(const Leak& leak, const ToldOfStack& told_of) {
  uint64_t survivors = 0, first = 0;
  for (const LeakStack& stack : leak.stacks) {
    survivors += stack.survivors;
    if (stack.survivors <= told_of.gradients(stack.stack)) first += stack.survivors;
  }
  return survivors != 0 && 10 * first >= 9 * survivors;
}

/// The leak's own line asked for it in a model's call, no function below it.
bool is_made_by_line(const Leak& leak, uint32_t stack, const Tables& tables) {
  return is_in_call(attribution_of(tables, stack).phase) &&
         tables.stacks.node(python_node(tables, stack)).frame ==
             tables.stacks.node(leak.node).frame;
}

/// Of a line that makes the caches of several models, some stacks may not look like it: those of a
/// model that is called for one token after the other.
bool is_line_of_caches(const Leak& leak, const ToldOfStack& told_of, const Tables& tables) {
  return std::ranges::all_of(leak.stacks, [&](const LeakStack& one) {
           return is_made_by_line(leak, one.stack, tables);
         }) &&
         std::ranges::any_of(leak.stacks,
                             [&](const LeakStack& one) { return told_of.is_cache(one.stack); });
}

bool one_block(const Leak& leak) {
  constexpr uint64_t kFew = 2;
  return std::ranges::all_of(leak.stacks, [](const LeakStack& stack) {
    if (stack.survivors <= kFew && stack.largest_bytes > stack.growth.grown_bytes) return true;
    return stack.old_survivors == 0 && stack.survivor_bytes > stack.growth.grown_bytes;
  });
}

}  // namespace

bool is_in_backward(const Tables& tables, uint32_t stack) {
  return any_frame(tables, stack, is_backward);
}

bool is_without_graph(const Tables& tables, uint32_t stack) {
  return any_frame(tables, stack, is_mode) && !any_frame(tables, stack, is_custom_function) &&
         attribution_of(tables, stack).phase != WorkPhase::kForward;
}

bool is_in_module(const Tables& tables, uint32_t stack) {
  return any_frame(tables, stack, is_module);
}

bool is_in_trace(const Tables& tables, uint32_t stack) {
  return any_frame(tables, stack, is_graph_building);
}

bool is_in_setup(const Tables& tables, uint32_t stack) {
  return attribution_of(tables, stack).is_in_setup;
}

uint32_t module_node(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(
      stack, [&](const Frame& frame) { return tables.strings.get(frame.file) == kModuleFile; });
}

std::string module_of_most(const Leak& leak, const Tables& tables) {
  std::map<std::string, double> bytes_a_step, of_equal_ones;
  for (const LeakStack& stack : leak.stacks) {
    const uint32_t node = module_node(tables, stack.stack);
    const std::string_view module =
        node == 0 ? "" : tables.strings.get(tables.stacks.frame_of(node).function);
    bytes_a_step[std::string(module)] += stack.growth.bytes_a_step;
    of_equal_ones[without_numbers(module)] += stack.growth.bytes_a_step;
  }
  for (const auto& modules : {bytes_a_step, of_equal_ones}) {
    const auto most = std::ranges::find_if(
        modules, [&](const auto& one) { return 2 * one.second > leak.bytes_a_step; });
    if (most != modules.end()) return most->first;
  }
  return {};
}

AllLeaks::AllLeaks(const std::vector<Leak>& leaks, const Tables& tables,
                   const ToldOfStack& told_of)
    : count_(leaks.size()) {
  constexpr double kMoreThanOutput = 1.5;  // blocks a step
  absl::flat_hash_map<uint32_t, double> saved_a_step;  // by process: blocks of such lines
  for (const Leak& leak : leaks) {
    if (makes_models(leak, tables)) keep_models_.insert(leak.process);
    const auto is_of_it = [&](uint32_t stack) { return is_of_create_graph(tables, stack); };
    if (share_of_stacks(leak, is_of_it) > 0) have_create_graph_.insert(leak.process);
    const auto is_of_graph = [&](const LeakStack& one) {
      return told_of.is_saved && told_of.is_saved(one.stack) && is_in_module(tables, one.stack) &&
             !is_in_backward(tables, one.stack);
    };
    if (!one_block(leak) && std::ranges::any_of(leak.stacks, is_of_graph) &&
        (saved_a_step[leak.process] += leak.survivors_a_step) >= kMoreThanOutput)
      keep_graphs_.insert(leak.process);
  }
  absl::flat_hash_set<std::pair<std::string_view, uint32_t>> pids;
  for (const Process& process : tables.processes) pids.insert({process.host, process.pid});
  for (uint32_t i = 0; i < tables.processes.size(); ++i) {
    const Process& process = tables.processes[i];
    if (process.parent_pid != 0 && pids.contains({process.host, process.parent_pid})) {
      are_children_.insert(i);
    }
  }
}

LeakEvidence evidence_of(const Leak& leak, const AllLeaks& all, const Tables& tables,
                         const HolderStacks& holders, const ToldOfStack& told_of) {
  LeakEvidence out;
  const ProcessHolders* told = holders.of_process(leak.process, tables);
  out.in_child = all.has_recorded_parent(leak.process) || (told && told->is_worker);
  out.in_optimizer =
      share_of_stacks(leak, [&](uint32_t s) { return is_of_optimizer(tables, s); }) > kMost;
  const auto is_history = [&](uint32_t s) {
    return is_of_optimizer(tables, s) && any_frame(tables, s, is_lbfgs);
  };
  out.in_lbfgs = share_of_stacks(leak, is_history) > kMost;
  out.in_backward = share(leak, tables, is_backward) > kMost;
  out.made_in_module = share(leak, tables, is_module) > 0;
  out.in_module = out.made_in_module || std::ranges::any_of(leak.others, [&](uint32_t stack) {
                    return any_frame(tables, stack, is_module);
                  });
  out.makes_models = makes_models(leak, tables);
  out.with_models = all.keeps_models(leak.process);
  // What autograd saved has one, whatever the mode of the operation that made it.
  const auto is_without = [&](uint32_t s) {
    return is_without_graph(tables, s) && !(told_of.is_saved && told_of.is_saved(s));
  };
  out.without_graph = share_of_stacks(leak, is_without) > 1 - 1e-9;
  out.in_tracing = leak.is_retraced && share(leak, tables, is_function_call) > kMost;
  out.is_of_kernels =
      share_of_stacks(leak, [&](uint32_t s) { return is_of_kernel(tables, s); }) > kMost;
  out.in_line_of_caches = told_of.is_cache && is_line_of_caches(leak, told_of, tables);
  out.in_cache = out.in_line_of_caches ||
                 (told_of.is_cache && share_of_stacks(leak, told_of.is_cache) > kMost);
  out.is_saved = told_of.is_saved && share_of_stacks(leak, told_of.is_saved) > kMost;
  out.with_graphs = !out.without_graph && all.keeps_graphs(leak.process);
  out.is_used_again =
      told_of.is_used_again && share_of_stacks(leak, told_of.is_used_again) > kMost;
  out.are_first_gradients = told_of.gradients && are_first_gradients(leak, told_of);
  out.grows_one_block = one_block(leak);
  out.module = module_of_most(leak, tables);
  out.is_training = leak.is_training, out.trains_in_steps = leak.trains_in_steps;
  out.sizes_rise = leak.sizes_rise;
  out.on_host = leak.device < tables.devices.size() && is_host_memory(tables.devices[leak.device]);
  out.has_create_graph = all.has_create_graph(leak.process);
  out.whole_graph = out.has_create_graph && all.count() > 1;
  std::vector<uint32_t> stacks;
  for (const LeakStack& stack : leak.stacks) stacks.push_back(stack.stack);
  // More than one round leaves: a variable has what the last round made, and nothing of the others.
  const auto of_a_round = static_cast<uint64_t>(std::clamp(leak.survivors_a_step, 1.0, 1e9));
  const uint64_t least_blocks = out.grows_one_block ? 1 : of_a_round + 1;
  static_cast<HolderStacks::Held&>(out) =
      holders.most_of(leak.process, leak.device, stacks, tables, least_blocks);
  if (is_in_filling_deque(out) && out.holder->entries != 0) {
    out.full_bytes = static_cast<double>(out.held_bytes) *
                     (static_cast<double>(out.holder->most_entries) /
                      static_cast<double>(out.holder->entries));
  }
  return out;
}

}  // namespace gpumemprof
