// The practices of saving memory, held against a recording of PyTorch: which of them would have
// lowered the peak, and by how much.
//
// Kinds: "gradients_kept", "gradients_unused", "gradients_copied", "graph_not_needed", "graph_kept", "checkpointing",
// "optimizer_temporaries", "prefetch", "data_in_memory", "inputs_kept", "results_kept",
// "sparse_gradient", "checkpoint_file_kept", "chunked_loss", "fused_attention",
// "late_backward", "optimizer_recreated", "optimizer_state", "smaller_batch", "leak",
// "allocator". What a recording does not tell (types of elements, other machines) is in
// AdviceReport::unknown.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "analysis/categories/attribution.h"
#include "analysis/leaks/graph_lives.h"
#include "analysis/line_text.h"

namespace gpumemprof {

/// A change to the lifetimes of the blocks of some stacks.
struct TraceChange {
  enum class Rule : uint8_t {
    kGone,           ///< removed, except `stays_bytes` of them at a time
    kGoneAfterStep,  ///< freed at the end of the step that allocated it
    /// Models gradients freed after every step: they end with the step, and the next backward pass
    /// allocates them again.
    kMadeAnewEachStep,
    /// Models recomputation, one group at a time: each group keeps `stays_bytes`, the largest all
    /// of it.
    kOneGroupAtATime,
    kGoneWhileIdle,  ///< `idle` are freed as they become so
    kGoneAtCall,     ///< freed when one of `calls` allocates next, except those of `kept_events`
    kGoneAtNext,     ///< freed when one of `calls` allocates next in another step
    /// Of what groups 0 and 1 hold, the smaller sum is removed: one has what the other has again.
    kHeldOnce,
  };
  Rule rule = Rule::kGone;
  uint16_t device = 0;
  absl::flat_hash_map<uint32_t, uint32_t> group_of;  ///< stack -> group
  /// Of kGone: a group of which stays what was computed of a block of `sources`, through autograd's
  /// graph.
  static constexpr uint32_t kUnlessDerived = 1;
  absl::flat_hash_set<uint32_t> sources;  ///< stacks
  uint64_t stays_bytes = 0;
  std::vector<IdleGradient> idle;
  absl::flat_hash_set<uint32_t> calls;        ///< stacks: of models' calls, or of what is next
  absl::flat_hash_set<uint64_t> kept_events;  ///< of the device, that allocated what stays
  /// What each step computes from all that `group_of` holds gets as large as in the first step, if
  /// the sizes prove that there is something like that.
  bool with_computed = false;

  bool has_blocks() const { return !group_of.empty() || !idle.empty(); }
};

struct ChangedPeak {
  uint64_t bytes = 0;
  std::vector<uint32_t> computed;  ///< stacks of TraceChange::with_computed; the largest first
};

/// The peak of each change's device with that change alone, in the order of `changes`. Everything
/// else happens as it did. Reads `source` to its end; memory O(live blocks + stacks) a change.
Result<std::vector<ChangedPeak>> replay_changes(EventSource& source,
                                             const std::vector<TraceChange>& changes);

/// A practice that may apply: advice without its saving, and the change to simulate.
struct PracticeCandidate {
  explicit PracticeCandidate(const DeviceAnalysis& device) { change.device = device.device; }
  /// The change is about the stack. The line of the first one is what the advice tells.
  void add_stack(uint32_t stack, const Tables& tables);
  /// The advice tells the line that has the most, with all of its stacks, in whatever order they come.
  void tell_line(uint32_t stack, uint64_t bytes, const Tables& tables);
  void tell(std::string kind, std::string title, std::string fix,
            std::vector<std::pair<std::string, uint64_t>> figures);

  Advice advice;
  TraceChange change;
  bool is_of_leak = false;
  struct ToldLine {
    uint64_t bytes = 0;
    uint32_t node = 0;
  };
  std::map<uint32_t, ToldLine> told_lines;  ///< of tell_line(), by frame
  /// At the peak, by what the advice is about: what is told where the change saves nothing in the
  /// replay. 0: then it is no advice.
  uint64_t held_bytes = 0;
};

using Candidates = std::vector<PracticeCandidate>;

/// It is one of PyTorch's, on which the categories are known.
bool is_of_practices(const DeviceAnalysis& device, const Tables& tables);

/// The device of those that `counts` takes, which is asked of one at a time: an accelerator before
/// the CPU, the higher peak first. Null where there is none.
const DeviceAnalysis* scarcest_device(const Analysis& analysis, const Tables& tables,
                                      bool (*counts)(const DeviceAnalysis&, const Tables&));

/// Input of the rules.
struct PracticeEvidence {
  const Analysis& analysis;
  const Tables& tables;
  const GraphEvidence& graph;
  LineText line_text = {};
  /// That most practices are about; null where there is none.
  const DeviceAnalysis* device = scarcest_device(analysis, tables, is_of_practices);

  const std::vector<CategoryHolder>& at_peak() const { return device->categories.at_peak; }
  Attribution work_of(uint32_t stack) const { return attribution_of(tables, stack); }
  /// The user's line of a stack as "file.py:3".
  std::string line_of(uint32_t stack) const;
  /// What the stack allocated in all; null where nothing is known.
  const StackSizes* made_by(uint32_t stack) const;
};

/// Without the graph, only the input and the output of one operation exist at a time.
inline constexpr uint64_t kOperands = 2;

/// Stacks whose blocks of several calls are kept for their value at the peak, though autograd saved
/// them: of what the same calls saved most is gone, so no graph keeps them.
std::set<uint32_t> values_without_graph(const PracticeEvidence& evidence);

// One file per group of practices; each appends the practices with evidence.
void find_gradient_practices(const PracticeEvidence& evidence, Candidates* candidates);
void find_activation_practices(const PracticeEvidence& evidence, Candidates* candidates);
void find_data_practices(const PracticeEvidence& evidence, Candidates* candidates);
void find_operation_practices(const PracticeEvidence& evidence, Candidates* candidates);
void find_call_practices(const PracticeEvidence& evidence, Candidates* candidates);

/// Into how many parts a batch is split after a request was refused: so many that what was left
/// holds one of them, or that as much was served before, if the request grows with the batch.
struct BatchParts {
  uint64_t count = 2;
  uint64_t fitting_bytes = 0, refused_bytes = 0;  ///< where two were not enough
};
inline constexpr uint64_t kMostBatchParts = 16;
/// Of the request that needs most of them; absent where kMostBatchParts are not enough.
std::optional<BatchParts> batch_parts(const ProgramEnds& ends);

/// What makes a run fit that did not comes first, and pure waste before choices that have a price;
/// the most bytes first in each.
void order_advice(std::vector<Advice>* advice);

/// An entry of AdviceReport::unknown that every recording of PyTorch's has, with the same reason.
bool is_told_by_no_recording(std::string_view kind, std::string_view why);

/// Frames of the lines that a finding is about, into `frames`.
void add_frames_of(const Finding& finding, const Tables& tables, std::set<uint32_t>* frames);

/// Frames of the program's own lines in a stack, into `frames`.
void add_own_frames(const Tables& tables, uint32_t stack, std::set<uint32_t>* frames);
/// The node of the innermost of them that is not among `frames`; 0: there is none.
uint32_t own_node_apart(const Tables& tables, uint32_t stack, const std::set<uint32_t>& frames);

/// Frames of the program's own lines that call a model, or what computes as one does
/// (Attribution::is_computed).
std::set<uint32_t> computing_lines(const PracticeEvidence& evidence);
/// A library made it below one of these lines, for the computation.
bool is_made_by_computation(const Tables& tables, uint32_t stack,
                            const std::set<uint32_t>& computing_lines);

/// Opens the same recording anew; the candidates are replayed in a second pass.
using SourceOpener = std::function<Result<std::unique_ptr<EventSource>>()>;

/// The advice of `advise` and of reports for a recording: advice of TensorFlow's, else of PyTorch's
/// practices. Of an analysis with findings (analyze_whole). Three passes over the events where there
/// is something to look at. What would save less than a twentieth of the peak, or than 64 KiB, is
/// not said. `applies` is false where the recording has no memory of either, or nothing is known of
/// what it is; then `unknown` has the reason. Simulated alone.
Result<AdviceReport> advise_on_recording(const Analysis& analysis, const Tables& tables,
                                         const SourceOpener& open, const LineText& line_text);

/// The same for a report that nobody asked for advice: not where the passes over the events would
/// be felt. The reason is in `unknown` then, as "all".
Result<AdviceReport> advise_in_passing(const Analysis& analysis, const Tables& tables,
                                       const SourceOpener& open, const LineText& line_text);

/// A pass of advice costs about as much as the analysis itself: half a second for so many.
inline constexpr uint64_t kMostEventsInPassing = 5'000'000;

}  // namespace gpumemprof
