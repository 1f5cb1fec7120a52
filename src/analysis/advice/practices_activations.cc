// Graphs without a backward pass, or kept after it; blocks that could be
// computed again.
#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
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
#include "trace/label_frames.h"
#include "trace/module_path.h"

namespace gpumemprof {
namespace {

using SavedStacks = absl::flat_hash_set<uint32_t>;

/// Graphs of one line that calls a model.
struct GraphsOfLine {
  std::vector<uint32_t> stacks;
  uint64_t passed_by = 0, read_by_others = 0;  // stacks
  bool is_used = false;
};

/// For what they saved no backward pass ever came: neither while it was live, nor, where passes of
/// other calls of the same modules did, through its own graph.
SavedStacks stacks_not_needed(const PracticeEvidence& evidence) {
  SavedStacks out;
  std::map<uint32_t, GraphsOfLine> by_line;
  for (const auto& [stack, lives] : evidence.graph.by_stack) {
    if (lives.is_not_needed()) out.insert(stack);
    GraphsOfLine& graphs = by_line[call_line(evidence.tables, stack)];
    graphs.is_used |= lives.in_backward > 0;
    if (lives.after_backward == 0 || lives.data > 0) continue;
    graphs.stacks.push_back(stack);
    // The failure of a program may free one before its pass.
    const bool is_passed_by = lives.passed_by > 1 && lives.passed_by == lives.after_backward;
    graphs.passed_by += is_passed_by;
    graphs.read_by_others += is_passed_by && lives.read_by_others > 0;
  }
  for (const auto& [line, graphs] : by_line) {
    // What one operation made may be kept for its value.
    if (!graphs.is_used && graphs.passed_by > 1 && graphs.read_by_others > 0)
      out.insert(graphs.stacks.begin(), graphs.stacks.end());
  }
  return out;
}

/// Where it is not known when each block was used last, all end with their step.
void take_idle(const PracticeEvidence& evidence, TraceChange* change) {
  const auto known = evidence.graph.idle.find(change->device);
  change->rule = TraceChange::Rule::kGoneAfterStep;
  if (!evidence.graph.has_all_idle || known == evidence.graph.idle.end()) return;
  change->rule = TraceChange::Rule::kGoneWhileIdle;
  std::ranges::copy_if(known->second, std::back_inserter(change->idle), [&](const auto& one) {
    return change->group_of.contains(one.stack);
  });
}

/// `is_needed`: what a backward pass came for and that stayed, else what none came for. Stacks are
/// taken of which all saved blocks are so.
void find_graphs(const PracticeEvidence& evidence, const SavedStacks& not_needed, bool is_needed,
                 Candidates* out) {
  PracticeCandidate candidate(*evidence.device);
  uint64_t largest = 0, kept = 0, at_peak = 0, retained = 0;
  const auto line_of = [&](uint32_t stack) {
    return evidence.tables.stacks.node(leak_line(evidence.tables, stack)).frame;
  };
  const std::set<uint32_t> values = is_needed ? std::set<uint32_t>{} : values_without_graph(evidence);
  std::set<uint32_t> lines, used;  // frames: of graphs for sure, of those that a pass came for
  for (const uint32_t stack : not_needed)
    if (evidence.graph.by_stack.at(stack).read_by_others > 0) lines.insert(line_of(stack));
  for (const auto& [stack, lives] : evidence.graph.by_stack)
    if (lives.in_backward > 0) add_own_frames(evidence.tables, stack, &used);
  for (const auto& [stack, lives] : evidence.graph.by_stack) {
    // Data that many graphs read is kept for them, not by one.
    const bool is_kept = lives.after_backward > 0 && lives.in_backward == 0 &&
                         lives.without_backward == 0 && lives.data == 0;
    // Between two evaluations a backward pass may end, so not all need be without one.
    if (not_needed.contains(stack) == is_needed || (is_needed && !is_kept)) continue;
    if (values.contains(stack)) continue;
    // A metric keeps probabilities of a graph that a pass went through: values, no graph.
    const bool may_be_value = lives.read_by_others == 0 && evidence.graph.backward_passes > 0;
    if (!is_needed && may_be_value && !lines.contains(line_of(stack))) continue;
    candidate.change.group_of[stack] = 0;
    largest = std::max(largest, lives.largest_bytes);
    const uint64_t bytes = lives.without_bytes > 0 ? lives.without_bytes : lives.after_bytes;
    kept += bytes, retained += lives.retained_bytes;
    // Training may run through the same lines of the model.
    const uint32_t apart = is_needed ? 0 : own_node_apart(evidence.tables, stack, used);
    const uint32_t line = apart != 0 ? apart : leak_line(evidence.tables, stack);
    candidate.tell_line(line, bytes, evidence.tables);
  }
  if (candidate.change.group_of.empty()) return;
  uint64_t activations = 0;  // what the graphs saved may be data, too
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (!candidate.change.group_of.contains(holder.stack)) continue;
    at_peak += holder.bytes;
    activations += holder.category == Category::kActivation ? holder.bytes : 0;
  }
  if (!is_needed && activations != 0) at_peak = activations;
  if (is_needed) take_idle(evidence, &candidate.change);
  const auto is_at_peak = [&](const IdleGradient& one) {
    const uint64_t peak = evidence.device->own_peak_event;
    return one.begin_event <= peak && peak < one.end_event;
  };
  if (candidate.change.rule == TraceChange::Rule::kGoneWhileIdle) {
    at_peak = 0;
    for (const IdleGradient& one : candidate.change.idle) at_peak += is_at_peak(one) ? one.size_bytes : 0;
  }
  const std::string line = evidence.line_of(candidate.advice.stack) +
                           (candidate.told_lines.size() > 1 ? " and other lines" : "");
  const std::string has = format_bytes(at_peak) + " at the peak";
  if (is_needed) {
    const bool is_retained = 2 * retained > kept;
    candidate.tell(
        "graph_kept",
        "what autograd saved at " + line + " stays live after its backward pass" +
            (is_retained ? ", which retained the graph: " : ": ") + has,
        is_retained ? "Where retain_graph=True is for a second backward pass, .detach() the input "
                      "that only one of them needs; else drop it, or del outputs and losses that no "
                      "later step reads"
                    : "Del outputs and losses that no later step reads. Where retain_graph=True is "
                      "for a second backward pass, .detach() the input that only one of them needs",
        {{"activation_bytes", at_peak}, {"kept_bytes_in_all", kept}});
  } else {
    candidate.tell(
        "graph_not_needed",
        "activations made at " + line + " are stored for a backward() that never runs: " + has,
        "Run what is not trained under torch.no_grad() or inference_mode()",
        {{"activation_bytes", at_peak}, {"kept_bytes_in_all", kept}});
    candidate.change.stays_bytes = kOperands * largest;
  }
  out->push_back(std::move(candidate));
}

/// "encoder.layers.*" and 3 of "encoder.layers.3.mlp"; empty where no part of the path is a number.
struct BlockPath {
  std::string name;
  uint32_t number = 0;
  bool is_below = false;  ///< it is a part of a block, not the block itself
};
BlockPath block_of(std::string_view module) {
  for (size_t begin = 0; begin < module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view part = module.substr(begin, end - begin);
    if (part.size() < 7 && is_number(part))
      return {.name = std::string(module.substr(0, begin)) + '*',
              .number = static_cast<uint32_t>(std::stoul(std::string(part))),
              .is_below = end < module.size()};
    begin = end + 1;
  }
  return {};
}

using BlockHolders = std::vector<const CategoryHolder*>;

/// All of it is of one operation of PyTorch's, as in a layer that keeps its input or its output and
/// no more (ReLU; Dropout, with its mask): to compute it again would keep its input in its place.
bool is_one_operation(const BlockHolders& block, const Tables& tables) {
  const uint32_t stack = block.front()->stack;
  if (std::ranges::any_of(block, [&](const auto* holder) { return holder->stack != stack; }))
    return false;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const std::string_view file = tables.strings.get(tables.stacks.frame_of(node).file);
    if (!is_torch_label(file)) return path_has(file, "/torch/");
  }
  return false;
}

struct BlockFamily {
  std::map<uint32_t, BlockHolders> blocks;  // by number
  std::set<uint32_t> with_parts;            // modules below them keep activations

  void leave_out_operations(const Tables& tables) {
    std::erase_if(blocks, [&](const auto& block) {
      return !with_parts.contains(block.first) && is_one_operation(block.second, tables);
    });
  }
  /// Else each keeps one result, as a layer of the program's own may.
  bool keeps_parts() const {
    return std::ranges::any_of(blocks, [&](const auto& block) {
      return with_parts.contains(block.first) || block.second.size() > 1 ||
             block.second.front()->count > 1;
    });
  }
};

std::map<std::string, BlockFamily> block_families(const PracticeEvidence& evidence,
                                                  const SavedStacks& not_needed) {
  std::map<std::string, BlockFamily> families;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    if (holder.category != Category::kActivation || holder.count == 0) continue;
    const Attribution work = evidence.work_of(holder.stack);
    if (work.is_recomputed) return {};  // it is in use
    if (not_needed.contains(holder.stack)) continue;
    const auto [family, number, is_below] = block_of(work.module);
    if (family.empty()) continue;
    families[family].blocks[number].push_back(&holder);
    if (is_below) families[family].with_parts.insert(number);
  }
  return families;
}

/// "encoder.layers.*" of all members of a list, "encoder.layers.{2-5}" of some; "{1,2,4,5}" where
/// the model itself is the list.
std::string name_of_blocks(const std::string& family,
                           const std::map<uint32_t, BlockHolders>& blocks) {
  if (family != "*" && blocks.rbegin()->first + 1 == blocks.size()) return family;
  const auto numbers = blocks | std::views::keys;
  return family.substr(0, family.size() - 1) +
         in_braces(std::set<uint64_t>(numbers.begin(), numbers.end()));
}

/// What stays of each block: the inputs of all its calls that are live, each as the smallest of what
/// the block computes from it.
uint64_t input_bytes(const std::map<uint32_t, BlockHolders>& blocks, uint64_t block_bytes,
                     const PracticeEvidence& evidence) {
  constexpr uint64_t kStatistics = 64;  // smaller parts of a block are means, masks and the like
  uint64_t smallest = UINT64_MAX, calls = 1;
  for (const auto& [number, holders] : blocks) {
    uint64_t of_block = UINT64_MAX;  // each part is made once in a call, or more often
    for (const CategoryHolder* holder : holders) {
      const StackSizes* made = evidence.made_by(holder->stack);
      if (!made) continue;
      for (const auto& [of_a_step, count] : made->by_size) {
        // The only live one has its own size, whatever steps of other batches made.
        const uint64_t size_bytes = holder->count == 1 ? holder->bytes : of_a_step;
        if (size_bytes * kStatistics < block_bytes) continue;
        smallest = std::min(smallest, size_bytes);
        of_block = std::min(of_block, holder->count * count / made->count);
      }
    }
    // Of a block whose backward pass goes on, parts are gone.
    if (of_block != UINT64_MAX) calls = std::max(calls, of_block);
  }
  return smallest == UINT64_MAX ? 0 : smallest * calls;
}

/// Modules of one list, equal in what they keep, that together are a large part of the peak.
void find_blocks(const PracticeEvidence& evidence, const SavedStacks& not_needed, Candidates* out) {
  if (evidence.graph.backward_passes == 0) return;  // nothing is computed again for
  if (are_activations_of_backward(evidence.at_peak(), evidence.tables)) return;
  constexpr uint64_t kLeastShare = 3;  // one part in so many of the peak
  for (auto& [family, known] : block_families(evidence, not_needed)) {
    known.leave_out_operations(evidence.tables);
    const auto& blocks = known.blocks;
    PracticeCandidate candidate(*evidence.device);
    uint64_t total = 0, least = UINT64_MAX, most = 0;
    for (const auto& [number, holders] : blocks) {
      uint64_t bytes = 0;
      for (const CategoryHolder* holder : holders) {
        candidate.change.group_of[holder->stack] = number;
        bytes += holder->bytes;
        candidate.tell_line(holder->stack, holder->bytes, evidence.tables);
      }
      total += bytes, least = std::min(least, bytes), most = std::max(most, bytes);
    }
    if (blocks.size() < 3 || !known.keeps_parts()) continue;
    if (total < evidence.device->figures.peak_bytes / kLeastShare) continue;
    if (2 * least < most) continue;  // not equal
    candidate.change.rule = TraceChange::Rule::kOneGroupAtATime;
    candidate.change.stays_bytes = input_bytes(blocks, most, evidence);
    candidate.advice.modules = family;
    candidate.tell(
        "checkpointing",
        "the " + std::to_string(blocks.size()) + " layers " + name_of_blocks(family, blocks) +
            " keep " + format_bytes(total) + " of activations, " +
            (least == most ? "" : "up to ") + format_bytes(most) + " each",
        "Checkpoint them: CheckpointedModel(model), torch.utils.checkpoint, or gpumemprof.optimize "
        "for as few as needed",
        {{"activation_bytes", total}, {"blocks", blocks.size()}});
    out->push_back(std::move(candidate));
  }
}

}  // namespace

std::set<uint32_t> values_without_graph(const PracticeEvidence& evidence) {
  constexpr uint64_t kSeveral = 4;  // calls: one or two may be in the middle of theirs
  absl::flat_hash_map<uint32_t, uint64_t> at_peak;
  for (const CategoryHolder& holder : evidence.at_peak()) at_peak[holder.stack] += holder.count;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint64_t>>> by_line;  // stacks, their blocks
  for (const auto& [stack, lives] : evidence.graph.by_stack) {
    const auto held = at_peak.find(stack);
    if (lives.is_not_needed())
      by_line[call_line(evidence.tables, stack)].emplace_back(
          stack, held == at_peak.end() ? 0 : held->second);
  }
  std::set<uint32_t> out;
  for (const auto& [line, saved] : by_line) {
    for (const auto& [stack, count] : saved) {
      const auto as_many = std::ranges::count_if(
          saved, [count](const auto& other) { return 2 * other.second >= count; });
      if (count >= kSeveral && 2 * static_cast<size_t>(as_many) < saved.size()) out.insert(stack);
    }
  }
  return out;
}

void find_activation_practices(const PracticeEvidence& evidence, Candidates* candidates) {
  if (!evidence.device) return;
  const SavedStacks not_needed = stacks_not_needed(evidence);
  find_graphs(evidence, not_needed, false, candidates);
  find_graphs(evidence, not_needed, true, candidates);
  find_blocks(evidence, not_needed, candidates);
}

}  // namespace gpumemprof
