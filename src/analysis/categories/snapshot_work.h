// What a stack of a PyTorch snapshot says of the work that memory was allocated for. A snapshot has
// code alone, none of the recorder's frames (attribution.h): files and functions of PyTorch's own
// are looked at, in Python and in C++; nothing is guessed from names of the user's. And how far the
// program has come.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/categories/attribution.h"
#include "trace/allocator_trace.h"
#include "trace/tables.h"

namespace gpumemprof {

struct SnapshotWork {
  /// What the innermost frame that says so was doing; never kEvaluation, of which no frame tells.
  WorkPhase phase = WorkPhase::kNone;
  bool has_python = false, has_native = false;  ///< frames of that kind; neither: no stack
  bool is_recomputed = false;     ///< backward calls forward again, as checkpointing does
  bool is_accumulated = false;    ///< in AccumulateGrad, which makes what a parameter's .grad is
  bool is_in_setup = false;       ///< PyTorch makes or moves what a module consists of
  bool clears_gradients = false;  ///< in zero_grad of an optimizer or a module
  bool is_without_gradients = false;  ///< in a function under torch.no_grad() or the like
  bool is_workspace = false;          ///< torch_frames.h
  bool is_replica = false;    ///< DataParallel copies a model to another device, for one call
  bool is_scattered = false;  ///< DataParallel gives a device its part of a batch
};
/// Answers that were given, by stack, and what each frame says. Not thread-safe; `tables` must
/// outlive it and not grow.
class SnapshotWorks {
 public:
  explicit SnapshotWorks(const Tables& tables)
      : tables_(tables),
        index_(tables.stacks.stack_count()),
        frames_(tables.stacks.frame_count()) {}
  /// Valid until the next call.
  const SnapshotWork& of(uint32_t stack);

 private:
  SnapshotWork look_at(uint32_t stack);

  const Tables& tables_;
  std::vector<uint32_t> index_;   // by stack; 0: not asked yet
  std::vector<uint16_t> frames_;  // by frame; 0: not looked at yet
  std::vector<SnapshotWork> known_;
};

// How far a program has come while a snapshot's trace goes on: which backward passes, steps of
// optimizers and calls of models have begun and ended, as stacks and annotations show.

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
