// The one door: what any input says. Commands, the module and the Python package come through here.
#pragma once

#include "analysis/analysis.h"
#include "input/input.h"

namespace gpumemprof {

/// An analysis and what its numbers stand for.
class Analyzed {
 public:
  Analysis analysis;
  const Tables& tables() const { return snapshot_ ? snapshot_->tables : source_->tables(); }

 private:
  friend Result<Analyzed> analyze(Input& input, AnalysisOptions options);
  std::unique_ptr<EventSource> source_;
  std::shared_ptr<const AllocatorSnapshot> snapshot_;
};

/// Analyses the input to the depth of the options. Figures, events and times of a device
/// whose allocator was followed are those of the allocator's history; what the program told of a
/// block goes before what rules conclude. Where the depth is kWhole, what lies beside a recording
/// is read too: who holds tensors, what was sampled, how programs ended (options.holders and truths
/// are then set here); what of that could not be read is in Analysis::loss.
/// Errors: those of the input; kUsage for samples and dumps, which are no events.
Result<Analyzed> analyze(Input& input, AnalysisOptions options);

/// The history of PyTorch's CUDA allocator: the snapshot, or that of a recording that followed
/// it, with the settings that its text of them stands for: what replay, what-if and the export
/// take. Errors: those of read_allocator_history.
Result<std::shared_ptr<const AllocatorSnapshot>> allocator_history(Input& input);

}  // namespace gpumemprof
