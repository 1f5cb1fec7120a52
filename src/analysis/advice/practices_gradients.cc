// Gradients that are kept, unused or mostly zero; optimizers' temporaries.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/advice/practices.h"
#include "analysis/categories/category_sums.h"
#include "analysis/leaks/leaks.h"
#include "base/path_parts.h"
#include "base/size.h"
#include "trace/holder_lines.h"
#include "trace/module_path.h"

namespace gpumemprof {
namespace {

/// What optimizers train, at any time of the run: a model may be kept after its optimizer is gone.
struct Trained {
  absl::flat_hash_set<std::string_view> modules, parents;

  explicit Trained(const PracticeEvidence& evidence) {
    const Tables& tables = evidence.tables;
    for (const CategoryHolder& holder : evidence.at_peak())
      if (holder.category == Category::kOptimizerState) add(tables.strings.get(holder.name));
    for (const auto& [process, name] : evidence.graph.optimizer_states)
      if (process == tables.devices[evidence.device->device].process) add(tables.strings.get(name));
  }

  /// The module, or one beside it, is trained.
  bool has_part(std::string_view module) const {
    return modules.contains(module) || parents.contains(module);
  }

  /// No optimizer updates the module's parameters, while those of others are updated. Models that
  /// share a place in the tree with trained parameters are partly frozen on purpose.
  bool leaves_out(std::string_view module) const {
    return !modules.empty() && !module.empty() && !modules.contains(module) &&
           !parents.contains(module_above(module));
  }

 private:
  void add(std::string_view state) {
    if (!state.contains(" of ")) return;  // "exp_avg of encoder.0.weight"
    const std::string_view module = module_of_storage(state);
    modules.insert(module), parents.insert(module_above(module));
  }
};

/// The innermost line that made parameters of what is not trained and none of what is; 0: there is
/// none, or they are of several.
uint32_t line_of_untrained(const Trained& trained, const PracticeEvidence& evidence) {
  const Tables& tables = evidence.tables;
  std::set<uint32_t> of_trained, lines;  // frames
  std::vector<uint32_t> untrained;       // stacks
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const std::string_view name = tables.strings.get(holder.name);
    if (holder.category != Category::kParameter || name.empty()) continue;
    const std::string_view module = module_of_storage(name);
    if (trained.leaves_out(module)) {
      untrained.push_back(holder.stack);
    } else if (trained.modules.contains(module)) {
      add_own_frames(tables, holder.stack, &of_trained);
    }
  }
  uint32_t line = 0;
  for (const uint32_t stack : untrained) {
    const uint32_t own = own_node_apart(tables, stack, of_trained);
    if (own == 0) return 0;
    line = own, lines.insert(tables.stacks.node(line).frame);
  }
  return lines.size() == 1 ? line : 0;
}

/// The module whose parameter it is the gradient of; without a name, the one that made it.
std::string_view module_of_gradient(const CategoryHolder& gradient,
                                    const PracticeEvidence& evidence) {
  return gradient.name == 0 ? evidence.work_of(gradient.stack).module
                            : module_of_storage(evidence.tables.strings.get(gradient.name));
}

/// Freeing it is not up to zero_grad(): a bucket lives as long as what exchanges gradients.
bool is_in_bucket(const CategoryHolder& gradient, const PracticeEvidence& evidence) {
  return is_of_several_gradients(evidence.tables.strings.get(gradient.name)) ||
         evidence.work_of(gradient.stack).is_reducer;
}

/// Where the outermost call of a module is, and the function that it runs; {}: there is none.
struct ModelCall {
  uint32_t node = 0, file = 0, function = 0;
  auto operator<=>(const ModelCall&) const = default;
};
ModelCall outermost_call(const Tables& tables, uint32_t stack) {
  ModelCall call;
  uint32_t inside = 0;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const std::string_view file = tables.strings.get(tables.stacks.frame_of(node).file);
    if (!path_ends_with(file, "/torch/nn/modules/module.py")) {
      inside = node;
    } else if (inside != 0) {
      const Frame& frame = tables.stacks.frame_of(std::exchange(inside, 0));
      call = {node, frame.file, frame.function};
    }
  }
  return call;
}

/// Of the models with modules that no optimizer updates, what those modules do. A model itself is
/// called by its class where its parts have names, so it is known by the calls of the parts in its.
class Theirs {
 public:
  Theirs(const PracticeEvidence& evidence, const Trained& trained,
         absl::flat_hash_set<std::string_view> modules)
      : evidence_(evidence), trained_(trained), modules_(std::move(modules)) {
    for (const std::string_view module : modules_) parents_.insert(module_above(module));
    for (const auto& [stack, sizes] : evidence.graph.allocated) {
      const Attribution work = evidence.work_of(stack);
      if (work.module.empty() || !is_in_call(work.phase)) continue;
      if (has_module(work.module))
        calls_.insert(outermost_call(evidence.tables, stack));
      else if (trained.has_part(work.module))
        trained_calls_.insert(outermost_call(evidence.tables, stack));
    }
  }

  bool has(uint32_t stack) const {
    const Attribution work = evidence_.work_of(stack);
    if (has_module(work.module)) return true;
    if (work.module.empty() || !is_in_call(work.phase) || trained_.has_part(work.module))
      return false;
    const ModelCall call = outermost_call(evidence_.tables, stack);
    return call.node != 0 && calls_.contains(call) && !trained_calls_.contains(call);
  }

 private:
  bool has_module(std::string_view module) const {
    if (trained_.modules.contains(module)) return false;
    if (modules_.contains(module) || parents_.contains(module)) return true;
    // "stem" may be a part of it, "Conv2d" another model.
    const bool is_part = module.contains('.') || is_number(module);
    return is_part && parents_.contains(module_above(module));
  }

  const PracticeEvidence& evidence_;
  const Trained& trained_;
  absl::flat_hash_set<std::string_view> modules_, parents_;
  std::set<ModelCall> calls_, trained_calls_;
};

/// Gradients of parameters that no optimizer updates, while others are updated. What their modules
/// computed of what others did stays: a backward pass runs through it to those.
void find_unused(const PracticeEvidence& evidence, Candidates* out) {
  const Trained trained(evidence);
  PracticeCandidate candidate(*evidence.device);
  absl::flat_hash_set<std::string_view> modules;
  uint64_t gradient_bytes = 0, activation_bytes = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    // Without a name it was never seen in a `.grad`: a derivative that the program asked for.
    if (holder.category != Category::kGradient || holder.name == 0) continue;
    if (is_in_bucket(holder, evidence)) continue;
    const std::string_view module = module_of_gradient(holder, evidence);
    if (!trained.leaves_out(module)) continue;
    gradient_bytes += holder.bytes;
    modules.insert(module);
    candidate.add_stack(holder.stack, evidence.tables);
  }
  if (gradient_bytes == 0) return;
  const Theirs theirs(evidence, trained, std::move(modules));
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (!theirs.has(holder.stack)) continue;
    const bool is_backward = evidence.work_of(holder.stack).phase == WorkPhase::kBackward;
    const bool is_work = holder.category == Category::kActivation ||
                         holder.category == Category::kGradient ||
                         (holder.category == Category::kTemporary && is_backward);
    if (!is_work) continue;
    if (holder.category == Category::kActivation) activation_bytes += holder.bytes;
    candidate.change.group_of[holder.stack] = is_backward ? 0 : TraceChange::kUnlessDerived;
  }
  std::vector<uint64_t> results;  // the largest of each stack
  for (const auto& [stack, lives] : evidence.graph.by_stack) {
    if (evidence.work_of(stack).phase == WorkPhase::kBackward) continue;
    if (!theirs.has(stack)) {
      candidate.change.sources.insert(stack);
      continue;
    }
    candidate.change.group_of[stack] = TraceChange::kUnlessDerived;
    if (const StackSizes* made = evidence.made_by(stack)) results.push_back(made->largest_bytes);
    // What outlives its backward pass the program keeps for its value.
    const uint64_t passes = std::max<uint64_t>(1, evidence.graph.backward_passes);
    candidate.change.stays_bytes += (lives.after_bytes + passes - 1) / passes;
  }
  // What enters a block of layers stays until it is added to the result.
  constexpr size_t kLive = kOperands + 1;
  std::ranges::sort(results, std::greater());
  if (!results.empty()) results.resize(kLive, results.front());
  for (const uint64_t bytes : results) candidate.change.stays_bytes += bytes;
  std::string fix = "Call requires_grad_(False) once on the model that is not trained";
  if (const uint32_t line = line_of_untrained(trained, evidence); line != 0)
    fix += ", made at " + short_line(evidence.tables, line);
  candidate.tell("gradients_unused",
                 "parameters that no optimizer updates have gradients, " +
                     format_bytes(gradient_bytes) + ", made at " +
                     evidence.line_of(candidate.advice.stack),
                 std::move(fix),
                 {{"gradient_bytes", gradient_bytes}, {"activation_bytes", activation_bytes}});
  out->push_back(std::move(candidate));
}

void add_kept(const std::string& what, uint64_t bytes, PracticeCandidate candidate,
              Candidates* out) {
  candidate.tell(
      "gradients_kept", what + ": " + format_bytes(bytes) + " at the peak",
      "Call optimizer.zero_grad(set_to_none=True), the default, right after optimizer.step()",
      {{"gradient_bytes", bytes}});
  out->push_back(std::move(candidate));
}

/// The same of a file without steps, where the gradients' lives tell when they were used last.
void find_idle(const PracticeEvidence& evidence, Candidates* out) {
  const DeviceAnalysis& device = *evidence.device;
  PracticeCandidate candidate(device);
  uint64_t bytes = 0, largest = 0;
  uint32_t freed_at = 0;
  for (const IdleGradient& one : device.categories.idle_gradients) {
    if (device.own_peak_event < one.begin_event || device.own_peak_event >= one.end_event) continue;
    bytes += one.size_bytes;
    if (one.size_bytes > largest) largest = one.size_bytes, freed_at = one.freed_at;
    candidate.tell_line(one.stack, one.size_bytes, evidence.tables);
  }
  if (bytes == 0) return;
  candidate.change.rule = TraceChange::Rule::kGoneWhileIdle;
  candidate.change.idle = device.categories.idle_gradients;
  std::string what = "gradients stay allocated into the next step";
  if (freed_at != 0) what += ", until " + evidence.line_of(freed_at) + " frees them";
  add_kept(what, bytes, std::move(candidate), out);
}

/// Gradients that live from one step into the next. Where they are added up over several passes
/// they do not: those are of the step that is not over yet. An optimizer's zero_grad() drops its own.
void find_kept(const PracticeEvidence& evidence, Candidates* out) {
  if (evidence.device->categories.is_by_rules) return find_idle(evidence, out);
  const Trained trained(evidence);
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kGradient || is_in_bucket(holder, evidence)) continue;
    if (trained.leaves_out(module_of_gradient(holder, evidence))) continue;
    bytes += holder.bytes;
    candidate.add_stack(holder.stack, evidence.tables);
  }
  if (bytes == 0) return;
  candidate.change.rule = TraceChange::Rule::kMadeAnewEachStep;
  add_kept("gradients made at " + evidence.line_of(candidate.advice.stack) +
               " stay allocated into the next step",
           bytes, std::move(candidate), out);
}

/// Gradients beside the buckets of DistributedDataParallel, in which each is once more.
void find_copied(const PracticeEvidence& evidence, Candidates* out) {
  const uint64_t bytes = bucket_bytes(evidence.at_peak(), evidence.tables);
  if (bytes == 0) return;
  PracticeCandidate candidate(*evidence.device);
  candidate.change.rule = TraceChange::Rule::kHeldOnce;
  // After the first step it makes them anew.
  for (const auto& [stack, made] : evidence.graph.allocated)
    if (evidence.work_of(stack).is_reducer) candidate.change.group_of[stack] = 1;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const bool is_bucket = holder.category == Category::kFrameworkOther &&
                           evidence.work_of(holder.stack).is_reducer;
    const bool is_gradient = holder.category == Category::kGradient && holder.name != 0;
    if (is_gradient || is_bucket) candidate.change.group_of[holder.stack] = is_bucket;
    if (is_bucket) candidate.tell_line(holder.stack, holder.bytes, evidence.tables);
  }
  candidate.tell("gradients_copied",
                 "DistributedDataParallel keeps a copy of all gradients in its buckets, " +
                     format_bytes(bytes),
                 "Give DistributedDataParallel gradient_as_bucket_view=True: the gradients are "
                 "then views of the buckets",
                 {{"bucket_bytes", bytes}});
  out->push_back(std::move(candidate));
}

/// An embedding's gradient at the peak, and the most rows that a lookup touched.
struct DenseGradient {
  uint64_t bytes = 0, looked_up_bytes = 0;
  std::vector<uint32_t> stacks;
};

/// "the gradient of the embedding user.emb has 12.2 MiB"; of several the largest are named.
std::string who_is_dense(const std::map<std::string_view, DenseGradient>& by_module,
                         uint64_t all_bytes) {
  constexpr size_t kMostNames = 3;
  if (by_module.size() == 1) {
    return "the gradient of the embedding " + std::string(by_module.begin()->first) + " has " +
           format_bytes(all_bytes);
  }
  std::vector<std::pair<uint64_t, std::string_view>> largest;
  for (const auto& [module, one] : by_module) largest.emplace_back(one.bytes, module);
  std::ranges::stable_sort(largest, std::greater(), [](const auto& one) { return one.first; });
  std::string names;
  for (size_t i = 0; i < std::min(largest.size(), kMostNames); ++i)
    names += (i == 0 ? " (" : ", ") + std::string(largest[i].second) + " " +
             format_bytes(largest[i].first);
  if (largest.size() > kMostNames)
    names += " and " + std::to_string(largest.size() - kMostNames) + " more";
  return "the gradients of " + std::to_string(largest.size()) + " embeddings have " +
         format_bytes(all_bytes) + names + ")";
}

/// Gradients as large as the tables of embeddings of which few rows were looked up.
void find_sparse(const PracticeEvidence& evidence, Candidates* out) {
  constexpr uint64_t kFewRows = 4;  // one in so many
  const Trained trained(evidence);
  std::map<std::string_view, DenseGradient> by_module;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const Attribution work = evidence.work_of(holder.stack);
    if (!work.node.starts_with("Embedding") || holder.category == Category::kParameter) continue;
    if (trained.leaves_out(work.module)) continue;  // it needs no gradient
    DenseGradient& one = by_module[work.module];
    one.bytes += holder.bytes;
    one.stacks.push_back(holder.stack);
  }
  // A lookup returns one row per index, so it used at most that many rows.
  for (const auto& [stack, allocated] : evidence.graph.allocated) {
    const Attribution work = evidence.work_of(stack);
    const auto one = by_module.find(work.module);
    if (one != by_module.end() && work.phase == WorkPhase::kForward)
      one->second.looked_up_bytes = std::max(one->second.looked_up_bytes, allocated.largest_bytes);
  }
  std::erase_if(by_module, [](const auto& of_module) {
    const DenseGradient& one = of_module.second;
    return one.looked_up_bytes == 0 || one.bytes < kFewRows * one.looked_up_bytes;
  });
  if (by_module.empty()) return;
  PracticeCandidate candidate(*evidence.device);
  uint64_t gradient_bytes = 0, looked_up = 0;
  for (const auto& [module, one] : by_module) {
    gradient_bytes += one.bytes, looked_up += one.looked_up_bytes;
    for (const uint32_t stack : one.stacks) candidate.add_stack(stack, evidence.tables);
  }
  const bool is_one = by_module.size() == 1;
  candidate.tell("sparse_gradient",
                 who_is_dense(by_module, gradient_bytes) + ", while " +
                     (is_one ? "a lookup touches" : "lookups touch") + " at most " +
                     format_bytes(looked_up) + " of rows",
                 std::string("Make ") + (is_one ? "it" : "each") +
                     " SparseEmbedding, or torch.nn.Embedding(…, sparse=True), with SGD, Adagrad "
                     "or SparseAdam",
                 {{"gradient_bytes", gradient_bytes}, {"lookup_bytes", looked_up}});
  candidate.change.stays_bytes = looked_up;
  out->push_back(std::move(candidate));
}

/// An optimizer's temporaries for all parameters at once.
void find_temporaries(const PracticeEvidence& evidence, Candidates* out) {
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0, count = 0, largest = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kTemporary) continue;
    if (evidence.work_of(holder.stack).phase != WorkPhase::kOptimizer) continue;
    bytes += holder.bytes, count += holder.count;
    if (const StackSizes* made = evidence.made_by(holder.stack))
      largest = std::max(largest, made->largest_bytes);
    candidate.add_stack(holder.stack, evidence.tables);
  }
  // Updating one parameter at a time needs two or three of the largest temporaries.
  constexpr uint64_t kStay = 3;
  if (bytes <= kStay * largest) return;
  candidate.tell("optimizer_temporaries",
                 "the optimizer's step at " + evidence.line_of(candidate.advice.stack) +
                     " makes " + format_bytes(bytes) +
                     " of temporaries for all parameters at once",
                 "Give the optimizer foreach=False, or fused=True if it supports that",
                 {{"temporary_bytes", bytes}, {"blocks", count}});
  candidate.change.stays_bytes = kStay * largest;
  out->push_back(std::move(candidate));
}

}  // namespace

void find_gradient_practices(const PracticeEvidence& evidence, Candidates* candidates) {
  if (!evidence.device) return;
  find_unused(evidence, candidates);
  find_sparse(evidence, candidates);
  find_kept(evidence, candidates);
  find_copied(evidence, candidates);
  find_temporaries(evidence, candidates);
}

}  // namespace gpumemprof
