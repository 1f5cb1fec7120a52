// Operations that keep what another way of computing the same does not: losses over a vocabulary,
// attention by hand; and the state of optimizers. Known by PyTorch's own functions and nodes.
#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/advice/practices.h"
#include "analysis/leaks/leak_evidence.h"
#include "base/path_parts.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// One row: PyTorch's functions (torch/nn/functional.py) and autograd nodes that identify it.
struct Operation {
  const char* kind;
  std::array<std::string_view, 3> functions;
  std::array<std::string_view, 4> nodes;  ///< without the number at their end
  bool is_in_layers;  ///< only where it comes from several modules, as attention does
  const char* what;
  const char* made;
  const char* gradients;  ///< what its backward nodes make; null: told as `made`
  const char* fix;
  const char* cost;
};

// Shapes of what they hold: docs/commands/advise.md.
constexpr Operation kOperations[] = {
    {"chunked_loss",
     {"cross_entropy", "nll_loss", "log_softmax"},
     {"NllLossBackward", "NllLoss2DBackward", "LogSoftmaxBackward", "CrossEntropyLossBackward"},
     false,
     "the loss holds ",
     "log-probabilities",
     "gradients of logits",
     "Compute the loss over chunks of the tokens under torch.utils.checkpoint, or with a fused "
     "linear cross-entropy: one chunk's logits exist at a time",
     "the logits of a chunk are computed again in backward"},
    {"fused_attention",
     {"softmax", "", ""},
     {"SoftmaxBackward", "", "", ""},
     true,
     "attention keeps ",
     "its scores",
     nullptr,
     "Use torch.nn.functional.scaled_dot_product_attention, which keeps no scores",
     "its results differ in the last digits"},
};

bool is_node(std::string_view node, std::string_view name) {
  if (name.empty() || !node.starts_with(name)) return false;
  return node.find_first_not_of("0123456789", name.size()) == std::string_view::npos;
}

bool is_backward_of(const Operation& operation, std::string_view node) {
  return std::ranges::any_of(operation.nodes,
                             [&](std::string_view name) { return is_node(node, name); });
}

bool is_of(const Operation& operation, const Tables& tables, uint32_t stack,
           std::string_view node) {
  if (is_backward_of(operation, node)) return true;
  if (!node.empty()) return false;
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    if (!path_ends_with(tables.strings.get(frame.file), "/torch/nn/functional.py")) return false;
    const std::string_view function = tables.strings.get(frame.function);
    const auto& known = operation.functions;
    return !function.empty() && std::ranges::find(known, function) != known.end();
  }) != 0;
}

/// Of a loss over a vocabulary that nothing is trained on.
constexpr Operation kWithoutGraph = {
    .kind = "chunked_loss",
    .what = "without gradients, one call makes ",
    .made = "log-probabilities of all tokens",
    .fix = "Compute them over chunks of the tokens: one chunk's logits exist at a time",
    .cost = "the output layer is called once for each chunk"};

/// By module, of what the operation's backward nodes made in the whole run: the gradient of a result
/// is as large as the result.
std::map<std::string_view, std::set<uint64_t>> sizes_by_module(const Operation& operation,
                                                               const PracticeEvidence& evidence) {
  std::map<std::string_view, std::set<uint64_t>> out;
  for (const auto& [stack, sizes] : evidence.graph.allocated) {
    const Attribution work = evidence.work_of(stack);
    if (is_backward_of(operation, work.node)) out[work.module].insert(sizes.largest_bytes);
  }
  return out;
}

/// What a stack outside of the backward pass holds in blocks of one of these sizes: `tensor.softmax()` has no
/// function of PyTorch's in its stack, but made what its backward node is about.
uint64_t held_in_sizes(const std::set<uint64_t>& sizes, const CategoryHolder& holder,
                       const PracticeEvidence& evidence) {
  const StackSizes* made = evidence.made_by(holder.stack);
  const uint64_t size_bytes = made ? made->largest_bytes : 0;
  if (size_bytes == 0 || !sizes.contains(size_bytes)) return 0;
  // No backward pass used it: no loss or attention that is trained has it.
  const auto lives = evidence.graph.by_stack.find(holder.stack);
  if (lives != evidence.graph.by_stack.end() && lives->second.is_not_needed()) return 0;
  return holder.bytes / size_bytes * size_bytes;
}

void find_operation(const Operation& operation, const PracticeEvidence& evidence,
                    Candidates* out) {
  PracticeCandidate candidate(*evidence.device);
  std::pair<bool, uint64_t> most;
  std::string_view module;
  bool are_several = false;
  uint64_t in_backward = 0, without_graph = 0;
  const auto sizes_of = sizes_by_module(operation, evidence);
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kActivation && holder.category != Category::kTemporary)
      continue;
    const Attribution work = evidence.work_of(holder.stack);
    uint64_t held = holder.bytes;
    if (!is_of(operation, evidence.tables, holder.stack, work.node)) {
      const auto sizes = sizes_of.find(work.module);
      if (sizes == sizes_of.end() || !work.node.empty()) continue;
      held = held_in_sizes(sizes->second, holder, evidence);
      if (held == 0) continue;
    }
    candidate.held_bytes += held;
    if (!work.node.empty()) {
      in_backward += held;
    } else if (is_without_graph(evidence.tables, holder.stack)) {
      without_graph += held;
    }
    if (module.empty()) module = work.module;
    are_several |= work.module != module;
    // The line of the operation, not of the backward pass through it.
    if (const std::pair rank(work.node.empty(), held); rank >= most)
      most = rank, candidate.advice.stack = leak_line(evidence.tables, holder.stack);
  }
  if (candidate.held_bytes == 0 || (operation.is_in_layers && !are_several)) return;
  const bool is_trained = !operation.gradients || without_graph < candidate.held_bytes;
  const Operation& told = is_trained ? operation : kWithoutGraph;
  const bool has_gradients = told.gradients && in_backward != 0;
  const bool has_made = !has_gradients || in_backward < candidate.held_bytes;
  candidate.tell(told.kind,
                 std::string(told.what) + (has_made ? told.made : "") +
                     (has_made && has_gradients ? " and " : "") +
                     (has_gradients ? told.gradients : "") + " (" +
                     evidence.line_of(candidate.advice.stack) +
                     "): " + format_bytes(candidate.held_bytes) + " at the peak",
                 told.fix, {{"held_bytes", candidate.held_bytes}});
  candidate.advice.cost = told.cost;
  out->push_back(std::move(candidate));
}

/// Modules with state whose backward passes stopped while those of others went on: their optimizer is
/// kept, and steps no more.
std::set<std::string_view> trained_before(const PracticeEvidence& evidence) {
  constexpr uint64_t kFewPasses = 8;
  std::map<std::string_view, StackSizes> passes;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category == Category::kOptimizerState)
      passes[module_of_storage(evidence.tables.strings.get(holder.name))];
  }
  uint64_t newest = 0;
  for (const auto& [stack, made] : evidence.graph.allocated) {
    const Attribution work = evidence.work_of(stack);
    const auto of = passes.find(work.module);
    if (work.phase != WorkPhase::kBackward || of == passes.end()) continue;
    of->second.last_pass = std::max(of->second.last_pass, made.last_pass);
    of->second.longest_pause = std::max(of->second.longest_pause, made.longest_pause);
    newest = std::max(newest, made.last_pass);
  }
  std::set<std::string_view> out;
  for (const auto& [module, made] : passes) {
    // Models that take turns, as in a GAN, pause too. Where no pass is known, none has stopped.
    const uint64_t pause = std::max(kFewPasses, 2 * made.longest_pause);
    if (made.last_pass != 0 && newest - made.last_pass > pause) out.insert(module);
  }
  return out;
}

/// How many optimizers have state of the same tensor, for every tensor that has any at the peak.
/// Beside a list in the state of one, as the history of LBFGS, are tensors that it has once.
/// Parameters of no model are called by their place in their optimizer: several have one name.
uint64_t optimizers_of_each(const PracticeEvidence& evidence) {
  std::map<uint32_t, uint64_t> count_of;  // by name, "exp_avg of encoder.0.weight"
  std::map<std::string_view, uint64_t> parameters;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const std::string_view name = evidence.tables.strings.get(holder.name);
    if (holder.category == Category::kParameter) parameters[name] += holder.count;
    if (holder.category != Category::kOptimizerState || !name.contains(" of ")) continue;
    count_of[holder.name] += holder.count;
  }
  uint64_t least = UINT64_MAX;
  for (const auto& [name, count] : count_of) {
    const std::string_view state = evidence.tables.strings.get(name);
    const auto named = parameters.find(state.substr(state.find(" of ") + 4));
    least = std::min(least, count / (named == parameters.end() ? 1 : named->second));
  }
  return count_of.empty() ? 0 : least;
}

/// Two may take turns, as for two losses of one model.
constexpr uint64_t kLeastOptimizers = 3;

/// Each has state of the same parameters: one of them steps.
void find_old_optimizers(uint64_t optimizers, uint64_t old_bytes, uint32_t stack,
                         const PracticeEvidence& evidence, Candidates* out) {
  const bool is_told = std::ranges::any_of(evidence.analysis.findings, [&](const Finding& one) {
    return one.kind == FindingKind::kLeak && one.device == evidence.device->device &&
           one.name == "optimizer_recreated";
  });
  if (is_told) return;
  PracticeCandidate candidate(*evidence.device);
  candidate.held_bytes = old_bytes;
  candidate.advice.stack = stack;
  candidate.tell(
      "optimizer_recreated",
      std::to_string(optimizers) +
          " optimizers have state of the same parameters; all but one keep " +
          format_bytes(old_bytes) + " at the peak",
      "Create one optimizer and change its param_groups, or drop every reference to the old ones, "
      "including those of schedulers",
      {{"held_bytes", old_bytes}, {"optimizers", optimizers}});
  out->push_back(std::move(candidate));
}

/// Adam's two moments are twice the parameters. Less of it is needed by an optimizer that steps.
void find_state(const PracticeEvidence& evidence, Candidates* out) {
  const std::set<std::string_view> before = trained_before(evidence);
  PracticeCandidate candidate(*evidence.device);
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kOptimizerState) continue;
    if (before.contains(module_of_storage(evidence.tables.strings.get(holder.name)))) continue;
    candidate.held_bytes += holder.bytes;
    candidate.tell_line(holder.stack, holder.bytes, evidence.tables);
  }
  if (candidate.held_bytes == 0) return;
  const uint64_t optimizers = optimizers_of_each(evidence);
  if (optimizers >= kLeastOptimizers) {
    const uint64_t old_bytes = candidate.held_bytes / optimizers * (optimizers - 1);
    find_old_optimizers(optimizers, old_bytes, candidate.advice.stack, evidence, out);
    candidate.held_bytes -= old_bytes;
  }
  candidate.tell(
      "optimizer_state", "the optimizer keeps " + format_bytes(candidate.held_bytes) + " of state",
      "Use an optimizer with less: 8-bit state takes a quarter of 32-bit state, SGD without "
      "momentum has none. With several devices, shard it (FSDP, ZeroRedundancyOptimizer)",
      {{"held_bytes", candidate.held_bytes}});
  candidate.advice.cost =
      "another optimizer may converge differently; sharding communicates in every step";
  out->push_back(std::move(candidate));
}

}  // namespace

void find_operation_practices(const PracticeEvidence& evidence, Candidates* candidates) {
  if (!evidence.device) return;
  for (const Operation& operation : kOperations) find_operation(operation, evidence, candidates);
  find_state(evidence, candidates);
}

}  // namespace gpumemprof
