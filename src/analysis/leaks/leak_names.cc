#include "analysis/leaks/leak_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gpumemprof {
namespace {

bool is_owned_by(const LeakEvidence& e, std::string_view owner) {
  return e.holder && e.holder->owner == owner;
}
/// No name led to it when it was looked for.
bool holds_itself(const LeakEvidence& e) {
  return is_owned_by(e, "nothing") && !e.grows_one_block;
}
bool is_in_dict(const LeakEvidence& e) {
  return std::ranges::find(e.holder->through, "dict") != e.holder->through.end();
}
bool has_graph(const LeakEvidence& e) { return e.holder && e.holder->with_graph != 0; }
/// Of what is held with a graph, nearly all are single numbers.
bool is_scalar(const LeakEvidence& e) {
  return has_graph(e) && e.holder->scalars * 10 >= e.holder->with_graph * 9;
}

/// Blocks that it keeps but for its graphs' leaves, which no backward pass frees.
uint64_t without_leaves(const TensorHolder& holder) {
  return holder.storages - std::min(holder.storages, holder.leaves);
}

/// What its operations saved for a backward pass is still there: none ran through the graph. After
/// one the tensors themselves are all that is left of it.
bool is_graph_whole(const LeakEvidence& e) {
  return has_graph(e) && 2 * without_leaves(*e.holder) >= 3 * e.holder->tensors;
}
/// A backward pass freed nearly all that its operations had saved: without the graph nearly as much
/// is kept.
bool is_graph_spent(const LeakEvidence& e) {
  return has_graph(e) && 10 * without_leaves(*e.holder) <= 11 * e.holder->tensors;
}
/// Beside numbers with a graph of which a backward pass left nothing, it holds tensors without one:
/// what grows are these.
bool is_beside_numbers(const LeakEvidence& e) {
  constexpr uint64_t kNumberBytes = 64;
  if (!is_scalar(e) || 2 * e.holder->tensors < 3 * e.holder->with_graph) return false;
  const uint64_t blocks = without_leaves(*e.holder);
  const uint64_t saved = blocks - std::min(blocks, e.holder->tensors);
  return 2 * saved < e.holder->with_graph && e.held_bytes > kNumberBytes * e.held_blocks;
}
/// What grows are tensors with a graph.
bool keeps_graphs(const LeakEvidence& e) {
  return has_graph(e) && !is_beside_numbers(e) && !e.grows_one_block;
}
/// A few tensors, the state of a recurrent layer or two, with the graph of many steps behind them.
bool is_carried_on(const LeakEvidence& e) {
  return e.holder && is_graph_of_few(*e.holder) && !e.holder->side_by_side && !e.grows_one_block;
}

/// A number in a variable is a sum of losses, most often; what a module keeps is its state.
bool is_state(const LeakEvidence& e) {
  return is_carried_on(e) && (!is_scalar(e) || is_owned_by(e, "module attribute"));
}

/// A graph is a bug however few are kept.
bool is_limited(const LeakEvidence& e) { return is_in_filling_deque(e) && !has_graph(e); }

/// What turns outputs into predictions, and what no loss to be trained on ends in: it has no
/// gradient worth having, or a loss takes the logarithm of it.
bool makes_predictions(const LeakEvidence& e) {
  constexpr std::array<std::string_view, 7> kOperations = {
      "SoftmaxBackward", "AmaxBackward", "AminBackward",  "MaxBackward",
      "TopkBackward",    "SortBackward", "ArgmaxBackward"};
  return e.holder && std::ranges::any_of(e.holder->operations, [&](std::string_view operation) {
           return std::ranges::any_of(
               kOperations, [&](std::string_view one) { return operation.starts_with(one); });
         });
}

struct Rule {
  bool (*holds)(const LeakEvidence&);
  LeakName name;
};

/// Of a graph that training needs no_grad would be an error.
constexpr LeakName kEvaluation = {
    "outputs_kept_with_graph", "outputs of a model are kept together with their graph",
    "keep .item() or .detach() of the outputs; an evaluation can run under torch.no_grad() or "
    "torch.inference_mode()"};
constexpr const char* kCarries = "a state carries the graph of all earlier steps into the next one";
constexpr LeakName kCycle = {
    "graph_cycle", "gradients made with create_graph form a cycle with their graph",
    "use torch.autograd.grad for the gradients, or set .grad to None after use"};
constexpr LeakName kKv = {"kv_cache_growth", "the KV cache keeps earlier requests or tokens",
                          "delete the cache of a request when it ends, and limit its length"};
constexpr LeakName kActivations = {
    "activations_kept", "activations of every step are kept",
    "keep numbers (.item()) or detached copies of the part that is needed, and clear what holds them "
    "after use"};

/// With a graph, which a copy would have, too, were it not detached.
constexpr const char* kNumbersOrDetached =
    "keep .item() or .detach() of the part that is needed, and remove old entries";
/// Without a graph it would keep nearly as much.
constexpr const char* kFewerOrSmaller =
    "remove old entries, or keep numbers (.item()) or a copy of the part that is needed";

constexpr const char* kTensorsKept = "tensors of every step are kept";
constexpr const char* kReplaced = "a tensor is replaced by a larger one again and again";

/// The first that holds is the name: what keeps it is surer than what it was made by.
constexpr Rule kRules[] = {
    {[](const LeakEvidence& e) { return e.grows_one_block && e.sizes_rise; },
     {"sizes_rise",
      "each pass makes larger blocks, too: its inputs get larger, or it joins what earlier ones made",
      "if that is not intended, limit lengths and sizes", FindingKind::kSizesRise}},
    {[](const LeakEvidence& e) { return e.in_tracing; },
     {kRetraced, "TensorFlow traces a function again, and keeps the graph of each trace",
      "make a model or a tf.function once, not in the loop; pass tensors instead of Python "
      "numbers, and tensors of one shape, or set reduce_retracing=True"}},
    {[](const LeakEvidence& e) { return e.is_of_kernels; },
     {kKernelsKept, "TensorFlow keeps a kernel for each new set of attributes of an eager operation",
      "call the operation in a tf.function, or with the same attributes each time: after "
      "tf.random.set_seed() each tf.random.* has another seed, but a tf.random.Generator and "
      "tf.random.stateless_* have none"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "exception"); },
     {"exception_traceback", "stored exceptions keep their frames and the frames' tensors",
      "keep the text: traceback.format_exc(); or call traceback.clear_frames() and drop "
      "__traceback__"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "cache"); },
     {"lru_cache_on_tensors", "functools.cache or lru_cache keeps the tensors of every call",
      "give lru_cache a small maxsize, use reusable keys instead of tensors, or call "
      "cache_clear()"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "link"); },
     {"chain_of_objects", "each object keeps the one before it, with all that it has",
      "set the attribute to None, or keep in it what is needed of the other object: a name, a score"}},
    // A leaked cycle gains a block a step; a block that is replaced was merely unreferenced when it
    // was sampled.
    {[](const LeakEvidence& e) { return holds_itself(e) && e.has_create_graph; }, kCycle},
    {[](const LeakEvidence& e) { return holds_itself(e) && e.is_gc_disabled; },
     {"reference_cycle",
      "no name holds them, and Python's garbage collector, which frees reference cycles, is disabled",
      "call gc.collect() every few steps, or break the cycle with weakref"}},
    // Of models that are there: they are trained one after the other.
    {[](const LeakEvidence& e) {
       return e.are_first_gradients && e.in_backward && !e.with_models;
     },
     {"fills_to_limit", "parameters get their first gradients, one after the other",
      "call zero_grad() on a model whose training is over", FindingKind::kFillsToLimit}},
    {[](const LeakEvidence& e) {
       return e.makes_models || (e.with_models && !is_owned_by(e, "hook") &&
                                 (e.in_optimizer || (e.in_backward && !has_graph(e))));
     },
     {"models_kept", "models made earlier are kept",
      "keep a score, or the weights in a file, instead of each model; an optimizer that is kept "
      "keeps its model's parameters, too"}},
    {[](const LeakEvidence& e) { return e.in_lbfgs; },
     {"fills_to_limit", "LBFGS keeps vectors of past steps, up to history_size for each optimizer",
      "lower history_size if that is too much memory, and use one optimizer",
      FindingKind::kFillsToLimit}},
    // The optimizer itself is gone.
    {[](const LeakEvidence& e) {
       return e.in_optimizer && e.holder && !is_owned_by(e, "optimizer") && is_in_dict(e);
     },
     {"optimizer_recreated", "states of earlier optimizers are kept: state_dict()s, or parts of them",
      "keep the last state alone, or one a key that comes again, and save earlier ones to files"}},
    {[](const LeakEvidence& e) { return e.in_optimizer || is_owned_by(e, "optimizer"); },
     {"optimizer_recreated", "a new optimizer allocates its state while the old one is kept",
      "create one optimizer and change its param_groups, or drop every reference to the old one, "
      "including those of schedulers"}},
    {[](const LeakEvidence& e) { return is_limited(e) && !e.holder->limit.empty(); },
     {"fills_to_limit", "it fills up to the limit that its owner has",
      "lower that limit if that is too much memory", FindingKind::kFillsToLimit}},
    {[](const LeakEvidence& e) { return is_limited(e); },
     {"fills_to_limit", "a deque fills up to its maxlen",
      "lower maxlen if that is too much memory", FindingKind::kFillsToLimit}},
    // A graph that no backward pass made: a tensor that its own node keeps in Python.
    {[](const LeakEvidence& e) { return holds_itself(e) && has_graph(e); },
     {"graph_cycle", "no name holds them: most often a tensor is kept by its own graph",
      "in a custom autograd.Function save tensors by ctx.save_for_backward(), not as attributes of "
      "ctx, and let no hook refer to its own tensor"}},
    // Tensors without a graph: a cycle of objects, or a reference that Python does not see.
    {[](const LeakEvidence& e) { return holds_itself(e); },
     {kGrowth, "no name holds them: a reference cycle does, or native code",
      "see whether gc.collect() frees them: if so, break the cycle with weakref; else drop the "
      "native object that holds them"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "hook"); },
     {"hook_stores", "a hook stores its arguments in every step",
      "keep only the last value or a number in the hook, remove the hook when it is done, and "
      "clear what it filled"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "metric"); },
     {"metric_not_reset", "a metric keeps the state of every step",
      "call the metric's reset() when its value is computed, as after each epoch; or use one that "
      "keeps figures alone, as with thresholds= of torchmetrics"}},
    {[](const LeakEvidence& e) { return is_state(e) && !e.trains_in_steps; },
     {"hidden_state_not_detached", kCarries,
      "run the loop under torch.no_grad() or torch.inference_mode(): no backward pass uses the "
      "graphs; or detach the state in every step: state = state.detach(), or for a tuple "
      "state = tuple(s.detach() for s in state)"}},
    {[](const LeakEvidence& e) { return is_state(e); },
     {"hidden_state_not_detached", kCarries,
      "detach the state at the end of every step or every few steps: state = state.detach(), or for "
      "a tuple state = tuple(s.detach() for s in state)"}},
    {[](const LeakEvidence& e) { return is_owned_by(e, "module attribute"); },
     {"tensors_on_model", "an attribute of a module collects tensors",
      "keep the last value or a running figure, detached, in a registered buffer, cap how many are "
      "kept, or clear the attribute after each step"}},
    {[](const LeakEvidence& e) {
       return is_scalar(e) && makes_predictions(e) && is_graph_whole(e) && !e.grows_one_block;
     },
     kEvaluation},
    {[](const LeakEvidence& e) { return is_scalar(e) && keeps_graphs(e); },
     {"loss_kept_with_graph", "a loss or metric is kept together with its graph",
      "keep the number: loss.item(), or loss.detach() if it must stay on the device"}},
    // autograd.grad made it with create_graph: under no_grad that is an error.
    {[](const LeakEvidence& e) {
       return is_graph_whole(e) && !e.grows_one_block && e.in_backward;
     },
     {"activations_kept", "results are kept together with a graph that a backward pass made",
      kNumbersOrDetached}},
    // No backward pass ran: detaching one list leaves the graph that a loop's variable carries on.
    {[](const LeakEvidence& e) {
       return is_graph_whole(e) && !e.grows_one_block && !e.trains_in_steps;
     },
     {kEvaluation.name, kEvaluation.title,
      "run the loop under torch.no_grad() or torch.inference_mode(): no backward pass uses the "
      "graphs"}},
    {[](const LeakEvidence& e) { return is_graph_whole(e) && !e.grows_one_block; }, kEvaluation},
    // Made outside of modules: batches, targets, what a loss is computed from.
    {[](const LeakEvidence& e) { return keeps_graphs(e) && is_graph_spent(e) && !e.in_module; },
     {"activations_kept", kTensorsKept, kFewerOrSmaller}},
    {[](const LeakEvidence& e) { return keeps_graphs(e) && is_graph_spent(e); },
     {"activations_kept", kActivations.title, kFewerOrSmaller}},
    {[](const LeakEvidence& e) { return keeps_graphs(e) && !e.in_module; },
     {"activations_kept", kTensorsKept, kNumbersOrDetached}},
    {[](const LeakEvidence& e) { return keeps_graphs(e); },
     {"activations_kept", kActivations.title, kNumbersOrDetached}},
    // A process that trains is a rank, whoever started it.
    {[](const LeakEvidence& e) { return e.in_child && !e.is_training; },
     {"worker_growth", "a worker process keeps more with every task",
      "keep nothing between tasks in the worker's data set or function, or limit its cache; "
      "otherwise restart workers every few tasks"}},
    {[](const LeakEvidence& e) {
       return e.grows_one_block && e.is_training && e.on_host && e.holder && !has_graph(e);
     },
     {kGrowth, kReplaced, "cap its length"}},
    {[](const LeakEvidence& e) { return e.grows_one_block && e.is_training; },
     {kGrowth, kReplaced,
      "cap its length, or store .item() or .detach().cpu() of it"}},
    {[](const LeakEvidence& e) { return e.grows_one_block; }, kKv},
    // Of a process that trains, pairs are batches, or predictions of an evaluation.
    {[](const LeakEvidence& e) {
       return e.holder && 2 * e.holder->in_pairs > e.holder->tensors && e.in_module &&
              !e.is_training;
     },
     kKv},
    {[](const LeakEvidence& e) { return e.in_cache; }, kKv},
    {[](const LeakEvidence& e) { return !e.holder && e.whole_graph; }, kCycle},
    {[](const LeakEvidence& e) { return e.in_backward; },
     {kGrowth, "gradients, or other tensors of a backward pass, are kept",
      "find what keeps them: a list, a hook, or tensors with a .grad; drop them after use"}},
    // No graph: there is no activation to store, and no loss.
    {[](const LeakEvidence& e) { return e.in_module && e.without_graph; },
     {"activations_kept",
      "outputs of calls without gradients are kept",
      "drop each output after use, or cap how many are held, if nothing "
      "does yet"}},
    // What keeps the graphs was not found: it may be what was saved, of which a copy is enough.
    {[](const LeakEvidence& e) {
       return e.in_module && !e.holder && e.with_graphs && !e.trains_in_steps;
     },
     {kEvaluation.name, kEvaluation.title,
      "run the loop under torch.no_grad() or torch.inference_mode(): no backward pass uses the "
      "graphs; or keep detached copies of the part that is needed"}},
    // On the line that runs the module, and no module made it. What autograd saved of that line may
    // be another tensor, where the holder shows none with a graph.
    {[](const LeakEvidence& e) {
       return e.in_module && !e.made_in_module && (e.holder || !e.is_saved);
     },
     {kActivations.name, kTensorsKept, kActivations.fix}},
    {[](const LeakEvidence& e) { return e.in_module; }, kActivations},
    {[](const LeakEvidence& e) { return e.is_used_again; },
     {kGrowth, "later steps use what is kept",
      "if not all of it is needed, keep a sum of it, or the last one alone"}},
    {[](const LeakEvidence& e) { return e.holder != nullptr; },
     {kGrowth, "more is stored than removed during this recording",
      "remove old entries, or cap how many are kept, if nothing does yet"}},
};

constexpr LeakName kNoKnownBug = {
    kGrowth, "cause unknown", "find what keeps them, and drop or limit it"};

}  // namespace

bool keeps_whole_graphs(const LeakEvidence& evidence) {
  return is_graph_whole(evidence) &&
         evidence.holder->with_graph * 10 >= evidence.holder->tensors * 9;
}

bool is_kv_cache(const LeakName& name) { return std::string_view(name.name) == kKv.name; }

bool is_all_kv_cache(const LeakName& name, const LeakEvidence& evidence) {
  const bool are_pairs = evidence.holder && evidence.holder->tensors != 0 &&
                         evidence.holder->in_pairs == evidence.holder->tensors;
  return is_kv_cache(name) &&
         (evidence.grows_one_block || are_pairs || evidence.in_line_of_caches);
}

bool may_be_result(const LeakName& name, const LeakEvidence& evidence) {
  const std::string_view known = name.name;
  // Two tensors in a tuple are keys and values, or an output and its target.
  const bool are_pairs = is_kv_cache(name) && evidence.holder && !evidence.in_cache &&
                         !evidence.grows_one_block;
  if (known != kActivations.name && known != kGrowth && !are_pairs) return false;
  return evidence.holder ? !has_graph(evidence) : !evidence.in_module || evidence.without_graph;
}

const LeakName& name_leak(const LeakEvidence& evidence) {
  for (const Rule& rule : kRules) {
    if (rule.holds(evidence)) return rule.name;
  }
  return kNoKnownBug;
}

}  // namespace gpumemprof
