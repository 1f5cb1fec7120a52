// How the tensors that autograd saved ended: in a backward pass, as they should, or otherwise.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "analysis/pass/program_end.h"
#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Of the blocks of one stack that autograd saved. Of what was live as its process was refused memory
/// only what a backward pass freed is counted: the refusal may have cut its pass off.
struct GraphLives {
  uint64_t in_backward = 0;       ///< freed while a node of autograd ran
  uint64_t after_backward = 0;    ///< freed outside, after a backward pass had ended
  /// Freed, or left to the end by a program that ended well, and no backward pass that could use it
  /// had ended in its life.
  uint64_t without_backward = 0;
  /// Of those after it: every pass through its module freed what another graph of it had saved, so
  /// that none retained its graph, and none ran through this one.
  uint64_t passed_by = 0;
  /// Of all that were not freed in one: what another operation than its own saved. The rest may be
  /// kept for its value.
  uint64_t read_by_others = 0;
  /// Data that several graphs read: saved, or saved again, when a backward pass had ended in its
  /// life. And what was only saved as a view that requires no gradient.
  uint64_t data = 0;
  uint64_t after_bytes = 0, without_bytes = 0;
  uint64_t retained_bytes = 0;  ///< of after_bytes, what a pass ran through that retained its graph
  uint64_t largest_bytes = 0;
  /// No backward pass ever came for what the stack saved.
  bool is_not_needed() const { return without_backward > 0 && in_backward == 0; }
};

/// Of the allocations of one stack.
struct StackSizes {
  uint64_t count = 0, largest_bytes = 0;
  std::map<uint64_t, uint64_t> by_size;  ///< of the first kMostSizes that are not equal
  static constexpr size_t kMostSizes = 16;
  /// Number of the backward pass in or after which it last allocated, from 1, and the most that lay
  /// between two of its allocations.
  uint64_t last_pass = 0, longest_pause = 0;
};

/// What the tasks of a DataLoader's worker made at one stack.
struct LoaderBatches {
  uint64_t tasks = 0, largest_bytes = 0;  ///< with one task alone nothing tells them apart
  uint64_t turn = 0, turn_bytes = 0;      ///< of the last task
};

struct GraphEvidence {
  /// By device: what a backward pass left, from the end of the last that retained its graph and could
  /// run through it; where none did, from the end of its step.
  std::map<uint16_t, std::vector<IdleGradient>> idle;
  bool has_all_idle = true;  ///< there were not more than kMostIdle
  static constexpr size_t kMostIdle = size_t{1} << 18;
  /// By stack: results of operations in modules' calls and of losses, no parameters or data.
  absl::flat_hash_map<uint32_t, GraphLives> by_stack;
  uint64_t backward_passes = 0;
  absl::flat_hash_map<uint32_t, StackSizes> allocated;  ///< by stack
  /// By process and stack.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, LoaderBatches> loader_batches;
  /// Process and name of what was told to be an optimizer's state, at any time.
  absl::flat_hash_set<std::pair<uint32_t, uint32_t>> optimizer_states;
  /// By device, which of its events allocated what torch.load() made and a model or an optimizer
  /// took over.
  std::map<uint16_t, absl::flat_hash_set<uint64_t>> loaded_and_used;
};

/// torch.load() is among the frames.
bool is_loaded(const Tables& tables, uint32_t stack);

/// Reads `source` to its end. Memory O(live blocks + stacks + passes + kMostIdle). `ends`: how the programs ended; what
/// one that failed left live may have waited for its backward pass.
Result<GraphEvidence> gather_graph_lives(EventSource& source, const ProgramEnds& ends);

}  // namespace gpumemprof
