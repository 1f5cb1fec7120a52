#include "analysis/categories/snapshot_work.h"

#include <algorithm>

#include "analysis/categories/torch_frames.h"
#include "base/path_parts.h"

namespace gpumemprof {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// Every optimizer's step runs in the wrapper that torch.optim.Optimizer puts around it.
bool runs_optimizer(std::string_view file, std::string_view function) {
  return is_torch_file(file, "optim/optimizer.py") && is_called(function, "wrapper");
}

bool clears_gradients(std::string_view file, std::string_view function) {
  return is_called(function, "zero_grad") &&
         (is_torch_file(file, "optim/optimizer.py") || is_torch_file(file, "nn/modules/module.py"));
}

bool sets_up(std::string_view file, std::string_view function) {
  return path_has(file, "/torch/nn/modules/") &&
         (is_called(function, "__init__") || is_called(function, "reset_parameters") ||
          is_called(function, "_apply") || is_called(function, "initialize_parameters"));
}

bool scatters(std::string_view file, std::string_view function) {
  return is_torch_file(file, "nn/parallel/scatter_gather.py") && has(function, "scatter");
}

/// What a frame says by itself; see SnapshotWork.
enum FrameFact : uint16_t {
  kLookedAt = 1,
  kPython = 2,
  kCheckpoint = 4,
  kFunctionApplied = 8,
  kWithoutGradients = 16,
  kClearsGradients = 32,
  kSetsUp = 64,
  kRunsBackward = 128,
  kRunsModule = 256,
  kRunsOptimizer = 512,
  kLoadsData = 1024,
  kAccumulates = 2048,
  kReplicates = 4096,
  kScatters = 8192,
};

uint16_t facts_of_native(std::string_view function) {
  const std::string_view name = function.substr(0, function.find('('));
  if (!has(name, "torch::autograd::")) return kLookedAt;
  if (has(name, "torch::autograd::AccumulateGrad")) return kLookedAt | kAccumulates | kRunsBackward;
  const bool runs_backward =
      has(name, "torch::autograd::Engine::") || has(name, "torch::autograd::Node::operator");
  return runs_backward ? kLookedAt | kRunsBackward : kLookedAt;
}

uint16_t facts_of(std::string_view file, std::string_view function) {
  if (!file.ends_with(".py") && !file.starts_with('<')) return facts_of_native(function);
  const auto is_context = [&] {
    return is_torch_file(file, "utils/_contextlib.py") && is_called(function, "decorate_context");
  };
  const auto is_applied = [&] {
    return is_torch_file(file, "autograd/function.py") && is_called(function, "apply");
  };
  const auto fact = [](bool holds, FrameFact is) -> unsigned { return holds ? is : 0; };
  return static_cast<uint16_t>(
      kLookedAt | kPython | fact(is_torch_file(file, "utils/checkpoint.py"), kCheckpoint) |
      fact(is_applied(), kFunctionApplied) | fact(is_context(), kWithoutGradients) |
      fact(clears_gradients(file, function), kClearsGradients) |
      fact(sets_up(file, function), kSetsUp) | fact(runs_backward(file, function), kRunsBackward) |
      fact(runs_module(file, function), kRunsModule) |
      fact(runs_optimizer(file, function), kRunsOptimizer) |
      fact(loads_data(file, function), kLoadsData) |
      fact(is_torch_file(file, "nn/parallel/replicate.py"), kReplicates) |
      fact(scatters(file, function), kScatters));
}

/// Frames from the innermost outwards.
class Reader {
 public:
  void look(uint16_t facts) {
    const bool is_python = facts & kPython;
    (is_python ? work.has_python : work.has_native) = true;
    if ((facts & kAccumulates) && work.phase == WorkPhase::kNone) work.is_accumulated = true;
    if (is_python) {
      // The outermost ones of a thread that autograd made, which runs Python only for these.
      ends_in_function_ = facts & (kCheckpoint | kFunctionApplied);
      if (facts & kCheckpoint) is_checkpoint_ = true;
      if (facts & kWithoutGradients) work.is_without_gradients = true;
      if (facts & kClearsGradients) work.clears_gradients = true;
      if (facts & kSetsUp) work.is_in_setup = true;
      if (facts & kReplicates) work.is_replica = true;
      if (facts & kScatters) work.is_scattered = true;
    }
    if (facts & kRunsBackward) return meet_backward();
    if (facts & kRunsModule) return meet(WorkPhase::kForward);
    if (facts & kRunsOptimizer) return meet(WorkPhase::kOptimizer);
    if (facts & kLoadsData) return meet(WorkPhase::kDataLoading);
  }
  SnapshotWork finish() {
    if (ends_in_function_) meet_backward();
    return work;
  }

 private:
  void meet(WorkPhase phase) {
    if (work.phase == WorkPhase::kNone) work.phase = phase;
  }
  /// Within backward a forward is one that is done again, whether a module's or a function's.
  void meet_backward() {
    const bool is_forward = work.phase == WorkPhase::kForward;
    if (is_forward || (work.phase == WorkPhase::kNone && is_checkpoint_)) {
      work.phase = WorkPhase::kBackward;
      work.is_recomputed = true;
    }
    meet(WorkPhase::kBackward);
  }

  bool is_checkpoint_ = false, ends_in_function_ = false;

 public:
  SnapshotWork work;
};

}  // namespace

SnapshotWork SnapshotWorks::look_at(uint32_t stack) {
  Reader reader;
  for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
    const uint32_t id = tables_.stacks.node(node).frame;
    uint16_t& facts = frames_[id < frames_.size() ? id : 0];
    if (facts == 0) {
      const Frame& frame = tables_.stacks.frame(id);
      facts = facts_of(tables_.strings.get(frame.file), tables_.strings.get(frame.function));
    }
    reader.look(facts);
  }
  SnapshotWork work = reader.finish();
  work.is_workspace = work.has_native && is_library_workspace(tables_, stack);
  return work;
}

const SnapshotWork& SnapshotWorks::of(uint32_t stack) {
  static const SnapshotWork kNothing;
  if (stack == 0 || stack >= index_.size()) return kNothing;
  uint32_t& index = index_[stack];
  if (index == 0) {
    known_.push_back(look_at(stack));
    index = static_cast<uint32_t>(known_.size());
  }
  return known_[index - 1];
}

SnapshotProgress::SnapshotProgress(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace) {
  if (!trace.has_times) return;
  for (const Annotation& annotation : snapshot.annotations) {
    const std::string_view name = snapshot.tables.strings.get(annotation.name);
    Said what;
    if (name.starts_with("Optimizer.step#")) {
      what = Said::kStep;
    } else if (name.starts_with("Optimizer.zero_grad#")) {
      what = Said::kZeroGrad;
    } else if (name.starts_with("enumerate(DataLoader)#")) {
      what = Said::kLoad;
    } else {
      continue;
    }
    moments_.push_back({annotation.time_us, what, annotation.is_begin});
  }
  std::ranges::stable_sort(moments_, {}, &Moment::time_us);
}

void SnapshotProgress::take(const Moment& moment) {
  switch (moment.what) {
    case Said::kStep:
      if (moment.is_begin) {
        enter(WorkPhase::kOptimizer, false);
        ++open_steps_;
      } else if (open_steps_ > 0 && --open_steps_ == 0) {
        enter(WorkPhase::kNone, false);
      }
      return;
    case Said::kZeroGrad:
      return enter(open_steps_ > 0 ? WorkPhase::kOptimizer : WorkPhase::kNone, false);
    case Said::kLoad:
      open_loads_ = std::max(0, open_loads_ + (moment.is_begin ? 1 : -1));
      return;
  }
}

void SnapshotProgress::advance_to(int64_t time_us) {
  for (; next_ < moments_.size() && moments_[next_].time_us <= time_us; ++next_) {
    take(moments_[next_]);
  }
}

void SnapshotProgress::finish() { advance_to(INT64_MAX); }

void SnapshotProgress::enter(WorkPhase phase, bool is_recomputing) {
  if (phase == WorkPhase::kDataLoading) return;
  if (is_recomputing_ && !is_recomputing) ++counts_.recomputations;
  is_recomputing_ = is_recomputing;
  if (phase == phase_) return;
  if (phase_ == WorkPhase::kBackward) ++counts_.backwards_ended;
  if (phase_ == WorkPhase::kOptimizer) ++counts_.steps;
  if (phase == WorkPhase::kForward) ++counts_.calls;
  if (phase == WorkPhase::kBackward) {
    ++counts_.backwards_begun;
    calls_before_.push_back(counts_.calls);
  }
  phase_ = phase;
}

}  // namespace gpumemprof
