// What several calls of a model hold at once: results that a loop keeps until it is over, graphs
// that wait for one backward pass.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/practices.h"
#include "analysis/finding_figure.h"
#include "analysis/leaks/leaks.h"
#include "base/path_parts.h"
#include "base/size.h"
#include "trace/holder_lines.h"
#include "trace/module_path.h"

namespace gpumemprof {
namespace {

/// Calls whose results are live together: fewer may be parts of a cache, or a pair to compare.
constexpr uint64_t kLeastResults = 8;
/// Calls whose graphs are: two or three are often of losses that need each other.
constexpr uint64_t kLeastGraphs = 4;
/// One result is being made, and the one before it is still in its variable.
constexpr uint64_t kResultsAtATime = 2;
/// An allocator rounds each part up to so much (kMinBlockSize of PyTorch's CUDACachingAllocator).
constexpr uint64_t kRounding = 512;

/// A stack within a call, and how many calls its blocks at the peak are of.
struct OfCalls {
  const CategoryHolder* holder;
  uint64_t calls;
};
/// Of a line that calls a model.
struct LineOfCalls {
  /// At most: a call allocates at each of its stacks once or more often.
  uint64_t calls_in_all = UINT64_MAX;
  /// The same of computations (Attribution::is_computed). What fewer than `least` made, the first of
  /// them made for all.
  uint64_t computations_in_all = UINT64_MAX;
  std::vector<OfCalls> held;
};
using CallsByLine = std::map<uint32_t, LineOfCalls>;

/// Made without gradients by a model's call, or by a library at a line that calls what computes as
/// one, and, as far as its life shows, not for the next call.
bool may_be_result(const CategoryHolder& holder, const Attribution& work, bool is_of_computation) {
  if (holder.why == WhyUnknown::kKeptResult) return true;
  const bool is_temporary = holder.category == Category::kTemporary;
  if (holder.why == WhyUnknown::kOutside || (is_temporary && work.phase == WorkPhase::kNone))
    return is_of_computation && !work.has_gradients;
  return is_temporary && work.phase == WorkPhase::kEvaluation;
}

/// Of the model's call, or of a loss beside it.
bool is_of_graph(const CategoryHolder& holder, const Attribution& work, bool) {
  return holder.category == Category::kActivation && work.phase != WorkPhase::kBackward &&
         !work.is_recomputed;
}

/// How many blocks the stack made that may be live when its call is over: an operation makes others
/// for itself, as a convolution its workspace.
uint64_t made_to_stay(uint32_t stack, const GraphEvidence& graph) {
  const auto saved = graph.by_stack.find(stack);
  if (saved == graph.by_stack.end()) return graph.allocated.find(stack)->second.count;
  const GraphLives& lives = saved->second;
  return lives.in_backward + lives.after_backward + lives.without_backward;
}

/// No result of a module's call, nor what autograd saved.
bool made_outside(const CategoryHolder& holder, const PracticeEvidence& evidence) {
  return holder.category != Category::kActivation &&
         evidence.work_of(holder.stack).phase == WorkPhase::kNone;
}

/// What `counts` takes of what is live at the peak and of `least` calls or more, without the lines
/// that a leak tells of: it has the fix.
CallsByLine held_by_calls(const PracticeEvidence& evidence, uint64_t least, const auto& counts) {
  const Tables& tables = evidence.tables;
  std::set<uint32_t> leaking;  // frames
  for (const Finding& finding : evidence.analysis.findings) {
    if (finding.kind == FindingKind::kLeak && finding.device == evidence.device->device)
      add_frames_of(finding, tables, &leaking);
  }
  const auto leaks = [&](uint32_t node) {
    return leaking.contains(tables.stacks.node(node).frame);
  };
  const std::set<uint32_t> computing = computing_lines(evidence);
  CallsByLine out;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const bool is_of_computation = is_made_by_computation(tables, holder.stack, computing);
    const Attribution work = evidence.work_of(holder.stack);
    if (holder.count < least || !counts(holder, work, is_of_computation)) continue;
    const uint32_t line = call_line(tables, holder.stack);
    if (leaks(line) || leaks(leak_line(tables, holder.stack))) continue;
    if (evidence.made_by(holder.stack)) out[line].held.push_back({&holder, 0});
  }
  if (out.empty()) return out;
  for (const auto& [stack, made] : evidence.graph.allocated) {
    const auto line = out.find(call_line(tables, stack));
    const Attribution work = evidence.work_of(stack);
    if (line == out.end()) continue;
    LineOfCalls& known = line->second;
    if (is_in_call(work.phase)) known.calls_in_all = std::min(known.calls_in_all, made.count);
    if (work.is_computed && made.count >= least)
      known.computations_in_all = std::min(known.computations_in_all, made.count);
  }
  for (auto& [line, known] : out) {
    for (OfCalls& one : known.held) {
      // A loop in the model makes several in a call.
      const uint64_t made =
          std::max<uint64_t>(1, made_to_stay(one.holder->stack, evidence.graph));
      const bool is_outside = made_outside(*one.holder, evidence);
      const uint64_t in_all = is_outside ? known.computations_in_all : known.calls_in_all;
      // No module tells a cache's layers apart, but every call makes a result.
      const bool is_known = in_all != UINT64_MAX && (!is_outside || made >= in_all);
      // What it made for itself is not told from what stays.
      const uint64_t calls = is_outside ? std::min(one.holder->count, in_all)
                                        : one.holder->count * std::min(in_all, made) / made;
      one.calls = is_known ? calls : 0;
    }
    std::erase_if(known.held, [&](const OfCalls& one) { return one.calls < least; });
  }
  std::erase_if(out, [](const auto& line) { return line.second.held.empty(); });
  return out;
}

/// What torch.cat() or torch.stack() made of the blocks of a holder: a block at the peak that is as
/// large as all of them.
uint64_t joined_bytes(const CategoryHolder& parts, const PracticeEvidence& evidence) {
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const StackSizes* made = evidence.made_by(holder.stack);
    if (holder.stack == parts.stack || !made) continue;
    const bool is_rounded = parts.bytes / parts.count % kRounding == 0;
    const uint64_t rounding = is_rounded ? parts.count * kRounding : 0;
    const auto from = made->by_size.lower_bound(parts.bytes - std::min(parts.bytes, rounding));
    if (from == made->by_size.end() || from->first > holder.bytes) continue;
    if (from->first <= parts.bytes + kRounding) return from->first;
  }
  return 0;
}

/// What every rank has of the results of all ranks: the objects that came from them, and blocks as
/// large as all of these, joined or computed of them.
struct OfAllRanks {
  std::vector<const CategoryHolder*> holders;
  uint64_t bytes = 0;
};

bool is_gathered_object(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return path_ends_with(tables.strings.get(frame.file),
                          "/torch/distributed/distributed_c10d.py") &&
           tables.strings.get(frame.function).ends_with("gather_object");
  }) != 0;
}

OfAllRanks of_all_ranks(const std::vector<OfCalls>& results, const PracticeEvidence& evidence) {
  constexpr uint64_t kRest = 100;  // one part in so many is of what is gathered beside them
  OfAllRanks out;
  const auto is_result = [&](const StackSizes& made) {
    return std::ranges::any_of(results, [&](const OfCalls& result) {
      const StackSizes* size = evidence.made_by(result.holder->stack);
      return size && made.by_size.contains(size->largest_bytes);
    });
  };
  uint64_t gathered = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const StackSizes* made = evidence.made_by(holder.stack);
    if (!made || !is_gathered_object(evidence.tables, holder.stack) || !is_result(*made)) continue;
    out.holders.push_back(&holder);
    gathered += holder.bytes;
  }
  if (gathered == 0) return out;
  const size_t own = out.holders.size();
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const StackSizes* made = evidence.made_by(holder.stack);
    if (!made || std::ranges::find(out.holders.begin(), out.holders.begin() + own, &holder) !=
                     out.holders.begin() + own)
      continue;
    const auto size = made->by_size.lower_bound(gathered - gathered / kRest);
    if (size != made->by_size.end() && size->first <= std::min(holder.bytes, gathered + kRounding))
      out.holders.push_back(&holder);
  }
  for (const CategoryHolder* holder : out.holders) out.bytes += holder->bytes;
  return out;
}

/// "eval.py:14, eval.py:17"
std::string lines_of(const std::vector<const CategoryHolder*>& holders,
                     const PracticeEvidence& evidence) {
  std::set<std::string, ByNumbers> lines;
  for (const CategoryHolder* holder : holders) lines.insert(evidence.line_of(holder->stack));
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ", ") + line;
  return text;
}

/// A cache has parts in many layers; results come from the one that runs last.
bool is_of_one_module(const std::vector<OfCalls>& of_calls, const Tables& tables) {
  std::map<std::string_view, uint64_t> bytes_of;
  uint64_t bytes = 0, most = 0;
  for (const auto& [holder, calls] : of_calls) {
    const uint64_t sum = bytes_of[attribution_of(tables, holder->stack).module] += holder->bytes;
    bytes += holder->bytes, most = std::max(most, sum);
  }
  return 4 * most >= 3 * bytes;
}

/// The growth that was found of the stack's blocks in a loop after the last step; null: none.
const Finding* loop_growth_of(const PracticeEvidence& evidence, uint32_t stack) {
  const auto& findings = evidence.analysis.findings;
  const auto found = std::ranges::find_if(findings, [&](const Finding& one) {
    return one.kind == FindingKind::kGrowthInLoop && one.device == evidence.device->device &&
           std::ranges::find(one.stacks, stack) != one.stacks.end();
  });
  return found == findings.end() ? nullptr : &*found;
}

/// What the program's views show of the holder's blocks, where they keep them; else 0.
uint64_t shown_bytes(const PracticeEvidence& evidence, const CategoryHolder& holder) {
  const Finding* growth = loop_growth_of(evidence, holder.stack);
  const uint64_t* viewed = growth ? find_figure(*growth, "viewed_bytes") : nullptr;
  const uint64_t* shown = growth ? find_figure(*growth, "shown_bytes") : nullptr;
  if (!viewed || !shown || *viewed == 0) return 0;
  const double share = static_cast<double>(*shown) / static_cast<double>(*viewed);
  return static_cast<uint64_t>(share * static_cast<double>(holder.bytes));
}

void tell_results(const PracticeEvidence& evidence, uint32_t line,
                  const std::vector<OfCalls>& of_calls, Candidates* out) {
  const Tables& tables = evidence.tables;
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0, blocks = 0, joined = 0, shown = 0;
  candidate.advice.stack = line;
  for (const auto& [holder, calls] : of_calls) {
    candidate.add_stack(holder->stack, tables);
    candidate.change.stays_bytes += kResultsAtATime * holder->bytes / calls;
    joined += joined_bytes(*holder, evidence);
    shown += shown_bytes(evidence, *holder);
    bytes += holder->bytes, blocks += holder->count;
  }
  candidate.change.stays_bytes += shown;
  candidate.tell(
      "results_kept",
      std::to_string(blocks) + " results of " + short_line(tables, line) +
          " are live together: " + format_bytes(bytes) + " at the peak",
      std::string(shown != 0 ? "Copy each view with clone() before it is kept; or keep" : "Keep") +
          " what is read later instead of the whole result: argmax, a sum, a running metric",
      {{"kept_bytes", bytes}, {"blocks", blocks}});
  Advice& advice = candidate.advice;
  if (!is_host_memory(tables.devices[evidence.device->device]))
    advice.fix += "; or move each result to the host with .cpu()";
  const OfAllRanks all = of_all_ranks(of_calls, evidence);
  if (joined != 0 && all.bytes == 0) {
    advice.title += ", and a tensor joined of them is another " + format_bytes(joined);
    advice.evidence.emplace_back("joined_bytes", joined);
    advice.fix +=
        ". Where all of it is needed, allocate the whole tensor first and write each result into "
        "it: torch.cat needs the parts and the whole at once";
  }
  if (all.bytes != 0) {
    // Of one batch at a time, they are computed all the same.
    const uint64_t at_a_time = candidate.change.stays_bytes;
    for (const CategoryHolder* holder : all.holders) {
      candidate.add_stack(holder->stack, tables);
      candidate.change.stays_bytes += at_a_time;
    }
    // Pickled, and on their way.
    std::set<std::string> gathers;
    for (const CategoryHolder* holder : all.holders)
      if (is_gathered_object(tables, holder->stack)) gathers.insert(evidence.line_of(holder->stack));
    for (const auto& [stack, made] : evidence.graph.allocated)
      if (is_gathered_object(tables, stack) && gathers.contains(evidence.line_of(stack)))
        candidate.change.group_of[stack] = 0;
    advice.title += ", and " + format_bytes(all.bytes) + " of those of all ranks (" +
                    lines_of(all.holders, evidence) + ")";
    advice.evidence.emplace_back("of_all_ranks_bytes", all.bytes);
    advice.fix += ". all_gather_object gives each rank the objects of all: gather what is read of them";
  }
  if (shown != 0) {
    advice.title += ", kept by views that show " + format_bytes(shown);
    advice.evidence.emplace_back("shown_bytes", shown);
  }
  out->push_back(std::move(candidate));
}

/// Made outside of the model of what its call returned, and as large as a result of that call, as
/// softmax() makes it of logits. That a loop calls the model is known of growth in rounds alone.
void find_results_beside(const PracticeEvidence& evidence, Candidates* out) {
  const Tables& tables = evidence.tables;
  std::map<uint32_t, std::vector<OfCalls>> by_line;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const StackSizes* made = evidence.made_by(holder.stack);
    if (holder.count < kLeastResults || !made) continue;
    if (evidence.work_of(holder.stack).phase != WorkPhase::kNone) continue;
    const Finding* growth = loop_growth_of(evidence, holder.stack);
    if (!growth) continue;
    const std::string* holds = find_fact(*growth, "holder");
    const std::string* round = find_fact(*growth, "round");
    if (!holds || holds->empty() || !round) continue;
    const auto returns_as_much = [&](const auto& of_stack) {
      const auto& [stack, sizes] = of_stack;
      return evidence.work_of(stack).phase == WorkPhase::kEvaluation &&
             sizes.by_size.contains(made->largest_bytes) &&
             short_line(tables, call_line(tables, stack)) == *round;
    };
    if (std::ranges::any_of(evidence.graph.allocated, returns_as_much))
      by_line[leak_line(tables, holder.stack)].push_back({&holder, holder.count});
  }
  for (const auto& [line, of_calls] : by_line) tell_results(evidence, line, of_calls, out);
}

void find_results(const PracticeEvidence& evidence, Candidates* out) {
  const std::set<uint32_t> values = values_without_graph(evidence);
  const auto is_result = [&](const CategoryHolder& holder, const auto& work, bool is_computed) {
    return values.contains(holder.stack) || may_be_result(holder, work, is_computed);
  };
  for (const auto& [line, known] : held_by_calls(evidence, kLeastResults, is_result)) {
    std::vector<OfCalls> held = known.held;
    const auto is_outside = [&](const OfCalls& one) {
      return made_outside(*one.holder, evidence);
    };
    if (!is_of_one_module(held, evidence.tables)) std::erase_if(held, is_outside);
    if (!held.empty() && is_of_one_module(held, evidence.tables))
      tell_results(evidence, line, held, out);
  }
}

/// Where the Trainer of transformers joins the predictions of a batch to those of all batches before;
/// 0: the stack is of something else.
uint32_t trainer_join(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return path_ends_with(tables.strings.get(frame.file), "/transformers/trainer_pt_utils.py") &&
           tables.strings.get(frame.function).ends_with("_concatenate");
  });
}

void find_predictions(const PracticeEvidence& evidence, Candidates* out) {
  const Tables& tables = evidence.tables;
  PracticeCandidate candidate(*evidence.device);
  uint64_t bytes = 0, blocks = 0, most = 0;
  uint32_t join = 0;
  for (const CategoryHolder& holder : evidence.at_peak()) {
    const uint32_t node = trainer_join(tables, holder.stack);
    if (node == 0) continue;
    bytes += holder.bytes, blocks += holder.count;
    candidate.add_stack(holder.stack, tables);
    if (holder.bytes > most) most = holder.bytes, join = node;
  }
  if (join == 0) return;
  // Evaluations of other lines are as large.
  for (const auto& [stack, made] : evidence.graph.allocated) {
    if (trainer_join(tables, stack) != 0) candidate.change.group_of[stack] = 0;
  }
  candidate.change.rule = TraceChange::Rule::kGone;
  std::string fix =
      "Give the Trainer preprocess_logits_for_metrics, which returns what compute_metrics reads of a "
      "batch, as logits.argmax(-1)";
  if (!is_host_memory(tables.devices[evidence.device->device]))
    fix += "; or let eval_accumulation_steps move them to the host";
  candidate.tell("results_kept",
                 "the Trainer's evaluation keeps the predictions of all batches, and copies them to "
                 "add one (" +
                     short_line(tables, join) + "): " + format_bytes(bytes) + " at the peak",
                 std::move(fix), {{"kept_bytes", bytes}, {"blocks", blocks}});
  out->push_back(std::move(candidate));
}

/// Each call has data of its own. The calls of a recurrent loop or of a solver work on what the one
/// before them made; those of a rollout look like parts of a batch, so it is a choice.
bool has_data_of_each(const PracticeEvidence& evidence, uint64_t calls) {
  constexpr uint64_t kScalarBytes = 8;
  return std::ranges::any_of(evidence.at_peak(), [&](const CategoryHolder& holder) {
    return holder.category == Category::kInput && holder.count + 1 >= calls &&
           holder.bytes > kScalarBytes * holder.count;
  });
}

/// Losses that are added up before one backward().
void find_waiting_graphs(const PracticeEvidence& evidence, Candidates* out) {
  const uint64_t passes = evidence.graph.backward_passes;
  if (passes == 0) return;
  for (const auto& [line, known] : held_by_calls(evidence, kLeastGraphs, is_of_graph)) {
    std::map<uint64_t, uint64_t> bytes_of;  // by number of calls
    uint64_t bytes = 0;
    for (const auto& [holder, calls] : known.held)
      bytes_of[calls] += holder->bytes, bytes += holder->bytes;
    const uint64_t calls =
        std::ranges::max_element(bytes_of, {}, [](const auto& one) { return one.second; })->first;
    if (known.calls_in_all / passes < calls) continue;  // graphs of earlier passes, or of none
    if (!has_data_of_each(evidence, calls)) continue;
    PracticeCandidate candidate(*evidence.device);
    candidate.advice.stack = line;
    candidate.held_bytes = bytes / calls * (calls - 1);
    candidate.tell(
        "late_backward",
        "graphs of " + std::to_string(calls) + " calls at " + short_line(evidence.tables, line) +
            " wait for one backward pass: " + format_bytes(bytes) + " at the peak",
        "Call backward() on the loss of each call: gradients add up, and one graph is live at a "
        "time",
        {{"graph_bytes", bytes}, {"calls", calls}});
    candidate.advice.cost =
        "only for calls that do not need each other, as of the parts of a batch; not for a "
        "sequence or a rollout";
    out->push_back(std::move(candidate));
  }
}

}  // namespace

void find_call_practices(const PracticeEvidence& evidence, Candidates* candidates) {
  if (!evidence.device) return;
  find_results(evidence, candidates);
  find_results_beside(evidence, candidates);
  find_predictions(evidence, candidates);
  find_waiting_graphs(evidence, candidates);
}

}  // namespace gpumemprof
