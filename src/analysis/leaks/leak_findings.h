// Leaks as findings: what, where, how fast, until when, and what to do; and what else is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/categories/categories.h"
#include "analysis/leaks/holder_stacks.h"
#include "analysis/leaks/leak_history.h"

namespace gpumemprof {

struct Leak;          // leaks.h
struct LeakEvidence;  // leak_evidence.h

struct LeakContext {
  std::optional<uint64_t> capacity_bytes;  ///< what was given on the command line
  const std::vector<HostRoom>* host_rooms = nullptr;  ///< may be null
  const ProgramEnds* ends = nullptr;                  ///< may be null
  const HolderStacks& holders;
  Categories& categories;  ///< before finish()
};

/// Adds them to `analysis->findings`. The devices of `analysis` must be there. What is kept is told to
/// the categories where its evidence says more than they know, and the other way round, so that both
/// say the same of it.
void add_leak_findings(const std::vector<ProcessHistory>& histories, const Tables& tables,
                       const LeakContext& context, Analysis* analysis);

/// What a leak has of the device's peak, at most; absent where its stacks are unknown, or it is
/// another device's.
std::optional<uint64_t> leak_bytes_at_peak(const Finding& finding, const DeviceAnalysis& device);

/// A leak that has less than a 20th of the peak, and whose limit no run like this reaches: the peak
/// has another cause.
bool is_small_part_of_peak(const Finding& finding, const DeviceAnalysis& device);

/// Whether what grows is batches, for no known cause or as what is called activations, by what is
/// live of its stacks at the peak.
bool keeps_inputs(const Finding& finding, const DeviceAnalysis& device);

/// Names these batches, with their fix and where a library made them. Where the categories of the
/// devices are known.
void tell_inputs(const Tables& tables, Analysis* analysis);

// Who holds what a leak keeps, in its finding, or why nobody knows.

/// `container`: what holds the objects that hold the lines' memory; or empty. `live_blocks`: at the
/// end. `told`: the looks of its process; may be null.
void add_holder(const HolderStacks::Held& held, std::string_view container, uint64_t live_blocks,
                const ProcessHolders* told, Finding* finding);
/// Says so where most of what is held are parts of larger storages, which a copy would let go.
void add_views(const LeakEvidence& evidence, Finding* finding);
/// Whether it did: a copy is then the fix, whatever else is known.
bool tells_views(const Finding& finding);

// What is kept and does not grow.

/// Gradients that stay allocated between the steps: memory that forward passes could have.
struct KeptGradients {
  uint32_t process = 0;
  uint16_t device = 0;
  uint32_t node = 0;  ///< the line that ran the backward pass
  uint64_t bytes = 0, blocks = 0;
  uint64_t steps = 0;            ///< over which they stayed
  std::vector<uint32_t> stacks;  ///< that made them
};
/// Blocks that a backward pass made in the first steps, that are as large as something else of that
/// age (its parameter), and that are live at the end, while backward passes of the
/// same line went on. `leaks`: lines that are left out, as theirs stay for another reason.
std::vector<KeptGradients> find_kept_gradients(const std::vector<ProcessHistory>& histories,
                                               const std::vector<Leak>& leaks,
                                               const Tables& tables);

/// What an evaluation after the last step keeps with whole graphs, in too few rounds for a trend: a
/// quarter of the peak more than any step had. Of programs that ended in order. Where the steps and
/// leaks of the devices are known.
void add_graphs_at_end(const std::vector<ProcessHistory>& histories, const Tables& tables,
                       const HolderStacks& holders, Analysis* analysis);

/// Two sets of the same parameters at the peak, one of which is gone later: old and new weights at a
/// hand-off. Adds "double_weights_in_phase" for each device where parameters that the program named
/// are there more than once at the peak, with the same names and sizes, 32 MiB and a 20th of the
/// peak, and nine tenths of that are gone for a 50th of the run after it while others stay.
void add_double_weights(Analysis* analysis);

/// What TensorFlow keeps of one line in several memories, as tensors and malloc's blocks, has one cause:
/// the finding of the memory with most of it is left, and names the others. Before fold_processes().
void fold_memories(const Tables& tables, std::vector<Finding>* findings);

/// One bug in several processes, workers or ranks, is one finding: the most severe of them, else the
/// one that holds most, with `processes` and `all_processes_bytes`. Where these share a host's memory
/// its limit is reached by the sum of their rates. `host_rooms` may be null. After what asks each
/// device for its leaks.
void fold_processes(const Tables& tables, const std::vector<HostRoom>* host_rooms,
                    std::vector<Finding>* findings);

/// Sets what all refusals have of the requests that were served at their stacks: whether a refused
/// one was unusual. Time O(stacks + refusals), and nothing where nothing was refused.
void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices);

}  // namespace gpumemprof
