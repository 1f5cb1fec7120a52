// How far a program has come while a snapshot's trace goes on: which backward passes, steps of
// optimizers and calls of models have begun and ended, as stacks and annotations show.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/categories/snapshot_work.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Counts since the trace's beginning. Those of a block's first and last moment tell its life.
struct ProgressCounts {
  uint32_t calls = 0;  ///< of models, begun
  uint32_t backwards_begun = 0;
  uint32_t backwards_ended = 0;
  uint32_t steps = 0;           ///< of optimizers, ended
  uint32_t recomputations = 0;  ///< ended
  bool operator==(const ProgressCounts&) const = default;
};

/// One thread of work is assumed, as the events do not name theirs: while autograd's threads run,
/// the one that called backward waits. Not thread-safe.
class SnapshotProgress {
 public:
  explicit SnapshotProgress(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace);

  /// Annotations that were said up to `time_us`; nothing in traces without times.
  void advance_to(int64_t time_us);
  /// After the last event: those that come later still tell what has ended.
  void finish();

  /// Memory is allocated or freed for this work, which ends what was done before. Data is loaded
  /// at any time, and ends nothing.
  void enter(WorkPhase phase, bool is_recomputing);

  const ProgressCounts& counts() const { return counts_; }
  WorkPhase phase() const { return phase_; }
  bool is_in_optimizer() const { return open_steps_ > 0; }  ///< says an annotation
  bool is_loading_data() const { return open_loads_ > 0; }
  /// What `calls` was when backward pass `number` began. Of one that has begun.
  uint32_t calls_before_backward(uint32_t number) const { return calls_before_[number]; }

 private:
  enum class Said : uint8_t { kStep, kZeroGrad, kLoad };
  struct Moment {
    int64_t time_us;
    Said what;
    bool is_begin;
  };
  void take(const Moment& moment);

  ProgressCounts counts_;
  WorkPhase phase_ = WorkPhase::kNone;
  bool is_recomputing_ = false;
  std::vector<Moment> moments_;  // by time
  size_t next_ = 0;
  int open_steps_ = 0, open_loads_ = 0;
  std::vector<uint32_t> calls_before_;
};

}  // namespace gpumemprof
