// What is known of a leak beside its growth: what the bugs are told apart by. Never a name of the
// program's own.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/leaks/holder_stacks.h"
#include "analysis/leaks/leaks.h"

namespace gpumemprof {

struct LeakEvidence : HolderStacks::Held {
  bool in_child = false;       ///< in a process that a recorded one, or multiprocessing, started
  bool in_optimizer = false;   ///< most of it was made inside torch.optim
  bool in_lbfgs = false;       ///< inside LBFGS, which keeps vectors of past steps
  bool in_backward = false;    ///< most of it was made by a backward pass
  bool in_module = false;      ///< the line runs a torch.nn module
  bool made_in_module = false;  ///< the module made part of what is kept
  bool makes_models = false;   ///< most of it was made in setting modules up: it is parameters
  bool with_models = false;    ///< the process also keeps what `makes_models`
  bool without_graph = false;  ///< all of it under no_grad or inference_mode (where it is told)
  /// Most of it was made in calls of a function of TensorFlow's that is traced again and again.
  bool in_tracing = false;
  bool is_of_kernels = false;  ///< most of it are TensorFlow's own objects for eager operations
  bool in_cache = false;       ///< most of it is a KV cache by its category
  /// All of it was made as caches are that the same line made for another model.
  bool in_line_of_caches = false;
  /// Lines of the process that call modules keep what autograd saved, and more than one output a step.
  bool with_graphs = false;
  bool is_saved = false;       ///< autograd saved most of it: a graph that is kept keeps it, too
  bool is_used_again = false;  ///< operations of later steps save most of it: it is no used batch
  /// No more blocks survive than before: a larger one takes the place of the last.
  bool grows_one_block = false;
  std::string module;        ///< path of the module that makes most of it; empty: none is told
  bool is_training = false;  ///< backward passes ran in the process
  bool trains_in_steps = false;  ///< likewise, in the steps or rounds that are looked at
  bool on_host = false;  ///< in the host's memory, so that a copy on the CPU saves nothing
  bool sizes_rise = false;   ///< what its passes make and drop gets larger, too
  bool has_create_graph = false;  ///< a backward pass that made a graph made part of what is kept
  /// Also the parameters, the forward and such a backward pass of one model grow together.
  bool whole_graph = false;
  /// Nine blocks in ten are of stacks that keep no more than they made gradients of parameters.
  bool are_first_gradients = false;
  double full_bytes = 0;     ///< where it is in a filling deque, about what a full one holds of it
};

/// In a deque with a maxlen, which had never been full before the last look: what a full one keeps
/// more is not limited by it.
inline bool is_in_filling_deque(const LeakEvidence& e) {
  return e.holder && e.holder->most_entries != 0 && e.holder->entries <= e.holder->most_entries &&
         !e.was_full && !e.grows_one_block;
}

/// Whether a backward pass made what the stack stands for.
bool is_in_backward(const Tables& tables, uint32_t stack);
/// Whether it was made under no_grad or inference_mode, not by a Function that autograd runs.
bool is_without_graph(const Tables& tables, uint32_t stack);
/// Whether it was made while a torch.nn module was called.
bool is_in_module(const Tables& tables, uint32_t stack);

/// Whether it was made while TensorFlow built the graph of a function.
bool is_in_trace(const Tables& tables, uint32_t stack);

/// Whether PyTorch made it for a module that it set up.
bool is_in_setup(const Tables& tables, uint32_t stack);

/// The node that names the innermost module; 0: none is told.
uint32_t module_node(const Tables& tables, uint32_t stack);

/// Path of the module that makes more than half of what grows, else of those that are numbers of one
/// list ("layers.*.attn"); empty where there is none.
std::string module_of_most(const Leak& leak, const Tables& tables);

/// What the categories tell of a stack; each may be empty.
struct ToldOfStack {
  std::function<bool(uint32_t stack)> is_cache;  ///< what is kept of it is a KV cache
  std::function<bool(uint32_t stack)> is_saved;  ///< autograd saved a block of it
  std::function<bool(uint32_t stack)> is_used_again;  ///< saved in later passes, too
  /// Of how many parameters its blocks were gradients.
  std::function<size_t(uint32_t stack)> gradients;
};

/// What each leak is judged beside, gathered once for all leaks of a recording.
class AllLeaks {
 public:
  AllLeaks(const std::vector<Leak>& leaks, const Tables& tables, const ToldOfStack& told_of);
  size_t count() const { return count_; }
  /// A backward pass with create_graph made part of what the process keeps.
  bool has_create_graph(uint32_t process) const { return have_create_graph_.contains(process); }
  /// Part of what the process keeps was made in setting modules up.
  bool keeps_models(uint32_t process) const { return keep_models_.contains(process); }
  bool keeps_graphs(uint32_t process) const { return keep_graphs_.contains(process); }
  bool has_recorded_parent(uint32_t process) const { return are_children_.contains(process); }

 private:
  size_t count_;
  absl::flat_hash_set<uint32_t> have_create_graph_, keep_models_, keep_graphs_, are_children_;  // processes
};

/// `all`: this one among them.
LeakEvidence evidence_of(const Leak& leak, const AllLeaks& all, const Tables& tables,
                         const HolderStacks& holders, const ToldOfStack& told_of);

}  // namespace gpumemprof
