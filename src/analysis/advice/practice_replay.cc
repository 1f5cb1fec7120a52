// The trace once more with a change applied to it: how high would memory have gone?
#include <algorithm>
#include <utility>

#include "analysis/advice/practices.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

struct ReplayedBlock {
  uint64_t size_bytes = 0, step = 0;
  uint32_t stack = 0;
  bool is_derived = false;  // of TraceChange::sources
  uint64_t less_bytes = 0;  // what it is smaller by, if it was computed from all that is held
};

/// Which blocks are computed from all that is held, by their sizes: the n-th block of a stack in each
/// step grows by the same for each byte more that is held. That alone is true of any two things that
/// grow evenly. The proof is one that is in proportion to what is held, as all of it in one block is.
class ComputedSizes {
 public:
  struct Held {
    uint64_t bytes, before_step;  // all, and without what this step made
  };

  /// What the block is larger by than the first one.
  uint64_t less_of(uint32_t stack, uint64_t size_bytes, uint64_t step, Held held) {
    if (held.bytes == 0) return 0;
    Turn& turn = turns_[stack];
    if (turn.step != step) turn = {step, 0};
    if (turn.next == kMostInStep) return 0;
    Sizes& sizes = sizes_[{stack, turn.next++}];
    const uint64_t less = sizes.take(size_bytes, held);
    is_proved_ |= sizes.count >= kLeastSizes && (sizes.is_part_of_all || sizes.is_part_of_earlier);
    if (less != 0) most_[stack] = std::max(most_[stack], less);
    return less;
  }

  /// Largest first; nothing where nothing is proved.
  std::vector<uint32_t> stacks() const {
    if (!is_proved_) return {};
    std::vector<std::pair<uint64_t, uint32_t>> sorted;
    for (const auto& [stack, bytes] : most_) sorted.emplace_back(bytes, stack);
    std::ranges::sort(sorted, std::greater());
    std::vector<uint32_t> out;
    for (const auto& [bytes, stack] : sorted) out.push_back(stack);
    return out;
  }

 private:
  static constexpr uint64_t kLeastSizes = 8;  // as many as steps are needed for a trend
  static constexpr uint32_t kMostInStep = 64;  // of a stack: a program may mark no steps
  using Product = unsigned __int128;

  struct Sizes {
    uint64_t first_bytes = 0, second_bytes = 0;
    Held first = {}, second = {};
    uint64_t count = 0;  // different ones
    bool is_even = true, is_part_of_all = true, is_part_of_earlier = true;

    uint64_t take(uint64_t bytes, Held held) {
      if (!is_even) return 0;
      if (count == 0) {
        first_bytes = bytes, first = held, count = 1;
        return 0;
      }
      if (held.bytes == first.bytes && bytes == first_bytes) return 0;
      is_even = held.bytes > first.bytes && bytes > first_bytes;
      if (!is_even) return count = 0;
      if (count == 1) second_bytes = bytes, second = held;
      is_even = product(bytes - first_bytes, second.bytes - first.bytes) ==
                product(second_bytes - first_bytes, held.bytes - first.bytes);
      if (!is_even) return count = 0;
      ++count;
      is_part_of_all &= product(bytes, first.bytes) == product(first_bytes, held.bytes);
      is_part_of_earlier &= first.before_step != 0 && product(bytes, first.before_step) ==
                                                          product(first_bytes, held.before_step);
      return bytes - first_bytes;
    }
    static Product product(uint64_t a, uint64_t b) { return static_cast<Product>(a) * b; }
  };
  struct Turn {
    uint64_t step = 0;
    uint32_t next = 0;  // how many blocks the stack has made in it
  };

  absl::flat_hash_map<uint32_t, Turn> turns_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Sizes> sizes_;  // by stack, which in its step
  absl::flat_hash_map<uint32_t, uint64_t> most_;                     // bytes that one block has less
  bool is_proved_ = false;
};

/// Simulates one change over the events of its device.
class ChangedTrace {
 public:
  explicit ChangedTrace(const TraceChange& change) : change_(change) {
    for (const IdleGradient& one : change.idle) {
      idle_changes_.emplace_back(one.begin_event, one.size_bytes);
      idle_changes_.emplace_back(one.end_event, -one.size_bytes);
    }
    std::ranges::sort(idle_changes_, {}, &std::pair<uint64_t, uint64_t>::first);
  }

  /// `event`: of the device's. Only here can the peak rise, so frees need not be told of.
  void allocate(uint64_t address, ReplayedBlock block, uint64_t event) {
    become_idle(event);
    end(address);  // its free was missed
    if (change_.rule == TraceChange::Rule::kGoneAtCall) {
      if (change_.calls.contains(block.stack)) gone_ = in_set_, ++last_step_;
      block.step = last_step_ + 1;
      if (change_.kept_events.contains(event)) block.stack = 0;  // not of the change
    } else if (change_.rule == TraceChange::Rule::kGoneAtNext) {
      if (change_.calls.contains(block.stack) && std::exchange(next_step_, block.step) != block.step)
        gone_ = in_set_, ++last_step_;
      block.step = last_step_ + 1;
    }
    if (reads_values_ && !is_operation_told_ && block.stack != last_stack_) is_derived_ = false;
    is_operation_told_ = reads_values_ = false, last_stack_ = block.stack;
    const auto group = change_.group_of.find(block.stack);
    const bool is_of_change = group != change_.group_of.end();
    block.is_derived = is_derived_ && is_of_change && group->second == TraceChange::kUnlessDerived;
    if (block.is_derived) block.stack = 0, derived_ += block.size_bytes;
    live_ += block.size_bytes;
    if (std::exchange(made_in_, block.step) != block.step) made_ = 0;
    if (change_.with_computed && !is_of_change)
      block.less_bytes = computed_.less_of(block.stack, block.size_bytes, block.step,
                                           {in_set_, in_set_ - std::min(in_set_, made_)});
    less_ += block.less_bytes;
    blocks_[address] = block;
    if (is_of_change && !block.is_derived) add(group->second, block);
    look();
  }

  /// Autograd saves what an operation reads before it allocates the result. An operation of which
  /// nothing is saved goes on from the one before it; as does one of the same stack of which only
  /// plain values are, as of a product the number.
  void save(uint64_t address, uint64_t flags) {
    if (change_.sources.empty() || (flags & kSavedIsOutput)) return;
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    if (!(flags & kSavedHasHistory)) {
      reads_values_ = true;
      return;
    }
    if (!is_operation_told_) is_derived_ = false, is_operation_told_ = true;
    const ReplayedBlock& block = found->second;
    is_derived_ |= !(flags & kSavedIsConstant) &&
                   (block.is_derived || change_.sources.contains(block.stack));
  }

  void end(uint64_t address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    const ReplayedBlock block = found->second;
    blocks_.erase(found);
    live_ -= block.size_bytes;
    less_ -= block.less_bytes;
    if (block.is_derived) derived_ -= block.size_bytes;
    if (const auto group = change_.group_of.find(block.stack); group != change_.group_of.end())
      remove(group->second, block);
  }

  /// Step number `step` has ended.
  void end_step(uint64_t step) {
    if (change_.rule != TraceChange::Rule::kGoneAtCall &&
        change_.rule != TraceChange::Rule::kGoneAtNext)
      last_step_ = step;
    extended_ = 0;
    if (change_.rule == TraceChange::Rule::kGoneAfterStep ||
        change_.rule == TraceChange::Rule::kMadeAnewEachStep) {
      gone_ = 0;
      kept_.clear();
      for (const auto& [address, block] : blocks_) {
        if (block.step > step || !change_.group_of.contains(block.stack)) continue;
        gone_ += block.size_bytes;
        ++kept_[{block.stack, block.size_bytes}];
      }
    }
    look();
  }

  ChangedPeak peak() const {
    std::vector<uint32_t> computed = computed_.stacks();
    const uint64_t bytes = computed.empty() ? peak_ : smaller_peak_;
    return {bytes, std::move(computed)};
  }
  uint16_t device() const { return change_.device; }

 private:
  void become_idle(uint64_t now) {
    for (; next_idle_ < idle_changes_.size(); ++next_idle_) {
      const auto& [event, bytes] = idle_changes_[next_idle_];
      if (event > now) return;
      idle_ += bytes;  // modulo 2^64, as the ends are subtracted
    }
  }

  bool has_groups() const {
    return change_.rule == TraceChange::Rule::kOneGroupAtATime ||
           change_.rule == TraceChange::Rule::kHeldOnce;
  }

  void add(uint32_t group, const ReplayedBlock& block) {
    in_set_ += block.size_bytes;
    made_ += block.size_bytes;
    if (!has_groups()) return;
    if (group >= groups_.size()) groups_.resize(size_t{group} + 1);
    groups_[group] += block.size_bytes;
  }

  void remove(uint32_t group, const ReplayedBlock& block) {
    in_set_ -= block.size_bytes;
    if (block.step == made_in_) made_ -= std::min(made_, block.size_bytes);
    if (has_groups()) {
      groups_[group] -= block.size_bytes;
      return;
    }
    if (change_.rule == TraceChange::Rule::kGone) return;
    const bool was_gone = block.step <= last_step_;
    if (was_gone) {
      gone_ -= std::min(gone_, block.size_bytes);
    } else if (change_.rule == TraceChange::Rule::kMadeAnewEachStep) {
      // The gradient of this pass, which was added to the kept one and dropped.
      const auto kept = kept_.find({block.stack, block.size_bytes});
      if (kept == kept_.end() || kept->second == 0) return;
      --kept->second;
      extended_ += block.size_bytes;
    }
  }

  uint64_t removed() const {
    switch (change_.rule) {
      case TraceChange::Rule::kGone:
        // What stays for it is among what an operation reads and makes.
        return in_set_ - std::min(in_set_, change_.stays_bytes -
                                               std::min(change_.stays_bytes, derived_));
      case TraceChange::Rule::kGoneAfterStep:
      case TraceChange::Rule::kMadeAnewEachStep:
      case TraceChange::Rule::kGoneAtCall:
      case TraceChange::Rule::kGoneAtNext:
        return gone_;
      case TraceChange::Rule::kOneGroupAtATime: {
        uint64_t sum = 0, largest = 0;
        for (const uint64_t bytes : groups_) {
          const uint64_t inner = bytes - std::min(bytes, change_.stays_bytes);
          sum += inner;
          largest = std::max(largest, inner);
        }
        return sum - largest;
      }
      case TraceChange::Rule::kHeldOnce:
        return groups_.size() < 2 ? 0 : std::min(groups_[0], groups_[1]);
      case TraceChange::Rule::kGoneWhileIdle:
        return idle_;
    }
    return 0;
  }

  void look() {
    const uint64_t bytes = live_ - std::min(live_, removed()) + extended_;
    peak_ = std::max(peak_, bytes);
    smaller_peak_ = std::max(smaller_peak_, bytes - std::min(bytes, less_));
  }

  const TraceChange& change_;
  absl::flat_hash_map<uint64_t, ReplayedBlock> blocks_;                // by address
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint64_t> kept_;  // stack, size -> blocks
  std::vector<uint64_t> groups_;
  std::vector<std::pair<uint64_t, uint64_t>> idle_changes_;  // event, bytes modulo 2^64
  size_t next_idle_ = 0;
  uint64_t idle_ = 0;
  uint64_t derived_ = 0;  // bytes
  uint64_t live_ = 0, in_set_ = 0, gone_ = 0, extended_ = 0, peak_ = 0;
  ComputedSizes computed_;
  uint64_t less_ = 0, smaller_peak_ = 0;  // with what is computed as large as in the first step
  uint64_t made_in_ = 0, made_ = 0;       // the last step, and what of the set it made and has
  uint64_t last_step_ = 0;  // or call, whichever frees
  uint64_t next_step_ = 0;  // in which the last of kGoneAtNext's calls allocated
  // Of the operation that allocates next: something is known of what it reads.
  bool is_derived_ = false, is_operation_told_ = false;
  bool reads_values_ = false;
  uint32_t last_stack_ = 0;
};

}  // namespace

Result<std::vector<ChangedPeak>> replay_changes(EventSource& source,
                                             const std::vector<TraceChange>& changes) {
  std::vector<ChangedTrace> traces(changes.begin(), changes.end());
  // By process, of which a snapshot has none: how many have ended.
  absl::flat_hash_map<uint32_t, uint64_t> steps;
  const Tables& tables = source.tables();
  const auto process_of = [&](uint16_t device) {
    return device < tables.devices.size() ? tables.devices[device].process : 0;
  };
  const auto take = [&](const Mark& mark) {
    if (mark.thread >= tables.threads.size()) return;
    const uint32_t process = tables.threads[mark.thread].process;
    if (mark.kind == MarkKind::kSaved) {
      for (ChangedTrace& trace : traces)
        if (process_of(trace.device()) == process) trace.save(mark.address, mark.value);
    }
    if (mark.kind != MarkKind::kStep) return;
    const uint64_t ended = ++steps[process];
    for (ChangedTrace& trace : traces) {
      if (process_of(trace.device()) != process) continue;
      trace.end_step(ended);
    }
  };
  // A snapshot begins in the middle: what was live by then is of its first step.
  if (const LiveState* before = source.state_before_first_event()) {
    for (ChangedTrace& trace : traces) {
      if (trace.device() >= before->devices().size()) continue;
      before->devices()[trace.device()].blocks.each([&](uint64_t address, const LiveBlock& block) {
        trace.allocate(address, {block.size_bytes, 1, block.stack}, 0);
      });
    }
  }
  std::vector<uint64_t> events_of;  // by device, so far
  EventBatch batch;
  for (;;) {
    const Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    size_t mark = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      for (; mark < batch.marks.size() && batch.marks[mark].before_event <= i; ++mark)
        take(batch.marks[mark]);
      if (batch.device[i] >= events_of.size()) events_of.resize(size_t{batch.device[i]} + 1);
      const uint64_t event = events_of[batch.device[i]]++;
      const bool is_alloc = batch.action[i] == Action::kAlloc;
      const bool ends = batch.frees_in_two_steps ? batch.action[i] == Action::kFreeCompleted
                                                 : is_free(batch.action[i]);
      if (!is_alloc && !ends) continue;
      // The number of the step in which it is made: the first is 1, as when it has ended.
      const uint64_t step = steps[process_of(batch.device[i])] + 1;
      for (ChangedTrace& trace : traces) {
        if (trace.device() != batch.device[i]) continue;
        if (is_alloc)
          trace.allocate(batch.address[i], {batch.size_bytes[i], step, batch.stack[i]}, event);
        else
          trace.end(batch.address[i]);
      }
    }
    for (; mark < batch.marks.size(); ++mark) take(batch.marks[mark]);
  }
  std::vector<ChangedPeak> peaks;
  for (const ChangedTrace& trace : traces) peaks.push_back(trace.peak());
  return peaks;
}

}  // namespace gpumemprof
