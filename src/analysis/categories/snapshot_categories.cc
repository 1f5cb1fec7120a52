#include "analysis/categories/snapshot_categories.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>

#include "analysis/categories/block_keeper.h"
#include "analysis/categories/category_ledger.h"
#include "analysis/categories/snapshot_work.h"
#include "base/large_pages.h"
#include "base/prefetch.h"
#include "trace/trace_source.h"

namespace gpumemprof {
namespace {

/// More than any memory; sums are signed.
constexpr uint64_t kMostBytes = uint64_t{1} << 62;
constexpr size_t kAhead = 16;               // events, for what is not in the caches
constexpr uint64_t kBefore = ~uint64_t{0};  // the "event" of what was live before the first one

/// Of which kinds the stacks of a trace are.
struct StackKinds {
  bool has_python = false, has_backward = false;
  /// Python's stacks alone: then autograd's own threads have none, and nearly all else has one.
  bool is_python_alone = false;
};

StackKinds kinds_of(const AllocatorTrace& trace, SnapshotWorks* works) {
  StackKinds kinds;
  uint64_t allocations = 0, with_python = 0, with_native = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    if (event.action != Action::kAlloc) continue;
    const SnapshotWork& work = works->of(event.stack);
    ++allocations, with_python += work.has_python, with_native += work.has_native;
    kinds.has_backward |= work.phase == WorkPhase::kBackward;
  }
  kinds.has_python = with_python != 0;
  constexpr uint64_t kShare = 10;  // fewer stacks than a tenth are stacks of something else
  kinds.is_python_alone = with_native == 0 && with_python > allocations / kShare;
  kinds.has_backward |= kinds.is_python_alone && with_python < allocations;
  return kinds;
}

class Categorizer {
 public:
  Categorizer(const AllocatorSnapshot& snapshot, size_t index, const TraceStart& start,
              std::optional<uint64_t> peak_event)
      : trace_(snapshot.traces[index]),
        start_(start),
        peak_event_(peak_event),
        works_(snapshot.tables),
        kinds_(kinds_of(trace_, &works_)),
        progress_(snapshot, trace_),
        blocks_(start.number_count) {}

  /// `keeper` is told what becomes of each block, where the categories are known.
  DeviceCategories run(uint64_t peak_bytes, uint16_t device, BlockKeeper* keeper) {
    if (keeper) prepare_by_block();
    take_all();
    DeviceCategories known = result(peak_bytes);
    if (!known.is_known) by_block_.clear(), earlier_.clear();
    if (keeper) keeper->tell_rules(device, by_block_, earlier_);
    return known;
  }
  std::vector<RuledBlock> run_by_block() {
    prepare_by_block();
    take_all();
    return std::move(by_block_);
  }

 private:
  void prepare_by_block() {
    by_block_.resize(trace_.events.count(Action::kAlloc));
    earlier_.resize(start_.blocks.size());
  }
  void take_all() {
    for (const EarlierBlock& earlier : start_.blocks) adopt(earlier);
    const size_t events = trace_.events.size();
    for (size_t i = 0; i < events; ++i) {
      if (i + kAhead < events) look_ahead(i + kAhead);
      take(i, trace_.events[i]);
    }
    progress_.finish();
    settle_backward();
    end_open();
  }

  struct Block {
    uint64_t size_bytes = 0, event = 0, time_ns = 0;
    uint32_t stack = 0;
    uint32_t begun = 0;    // when it was made: in begun_
    uint32_t ordinal = 0;  // of the allocations, or of the blocks that were there before
    WorkPhase phase = WorkPhase::kNone;
    bool is_unseen = false, is_gradient = false, is_live = false;
  };
  /// What the program had done when a block was made. Of many blocks it is the same.
  struct Begun {
    ProgressCounts counts;
    uint32_t ooms = 0;
    bool operator==(const Begun&) const = default;
  };
  struct Site : GrowingSite {
    Category before = Category::kUnknown;
  };
  struct Gradients {
    uint64_t live = 0, most = 0;
    uint64_t parameters = 0, states = 0;  // told by their stacks, and there at the end
    std::vector<uint32_t> others;         // blocks that only their size can tell
  };

  void put(uint32_t number, const Block& block) {
    live_count_ += !blocks_[number].is_live;
    blocks_[number] = block;
    blocks_[number].is_live = true;
    is_absurd_ |= block.size_bytes > kMostBytes - live_bytes_;
    if (!is_absurd_) live_bytes_ += block.size_bytes;
  }
  /// The index in begun_ of what is so now.
  uint32_t begun_now() {
    const Begun now{progress_.counts(), ooms_};
    if (begun_.empty() || !(begun_.back() == now)) begun_.push_back(now);
    return static_cast<uint32_t>(begun_.size() - 1);
  }
  void adopt(const EarlierBlock& earlier) {
    Block block;
    block.size_bytes = earlier.requested_bytes, block.event = kBefore, block.stack = earlier.stack;
    block.time_ns = time_ns(0), block.phase = works_.of(earlier.stack).phase;
    block.begun = begun_now();
    block.ordinal = static_cast<uint32_t>(&earlier - start_.blocks.data());
    put(earlier.number, block);
  }
  uint64_t time_ns(size_t i) const {
    if (!trace_.has_times || trace_.events.empty()) return 0;
    return TraceSource::time_of(trace_, i, trace_.events[i].time_us);
  }

  void look_ahead(size_t i) const {
    constexpr size_t kFewBlocks = 4096;  // the caches keep them
    const uint32_t number = start_.numbers[i];
    if (blocks_.size() >= kFewBlocks && number < blocks_.size())
      prefetch_line(&blocks_[number]);
  }

  void take(size_t i, const AllocatorEvent& event) {
    if (trace_.has_times) progress_.advance_to(event.time_us);
    if (event.action == Action::kAlloc) {
      allocate(i, event);
    } else if (start_.facts.ends_block(event)) {
      free(i, event);
    } else if (event.action == Action::kOom) {
      ++ooms_;
    }
    settle_backward();
    if (peak_event_ == i) passed_at_peak_ = passed_;
  }

  WorkPhase phase_of(const AllocatorEvent& event, const SnapshotWork& work) const {
    if (event.stack == 0 && kinds_.is_python_alone) return WorkPhase::kBackward;
    if (work.phase != WorkPhase::kNone) return work.phase;
    if (progress_.is_in_optimizer()) return WorkPhase::kOptimizer;
    return progress_.is_loading_data() ? WorkPhase::kDataLoading : WorkPhase::kNone;
  }

  auto is_gone() const {
    return [this](const std::pair<uint32_t, uint64_t>& made) {
      const Block& block = blocks_[made.first];
      return !block.is_live || block.event != made.second;
    };
  }
  void allocate(size_t i, const AllocatorEvent& event) {
    const SnapshotWork work = works_.of(event.stack);
    const WorkPhase phase = phase_of(event, work);
    // A thread that runs no Python, next to those that do, says nothing of them.
    if (phase != WorkPhase::kNone || work.has_python || !kinds_.has_python) {
      if (event.stack != 0 || kinds_.is_python_alone) progress_.enter(phase, work.is_recomputed);
    }
    see_whether_gradients_are_used(i);
    settle_backward();
    Block block;
    block.size_bytes = event.size_bytes, block.event = i, block.time_ns = time_ns(i);
    block.stack = event.stack, block.begun = begun_now(), block.phase = phase;
    block.is_unseen = event.stack == 0;
    block.ordinal = allocations_++;
    if (block.ordinal < by_block_.size()) {
      by_block_[block.ordinal].place = RuledBlock::place_of(event.address);
    }
    if (phase == WorkPhase::kForward) {
      sites_[event.stack].allocate(block.size_bytes, progress_.counts().calls);
    }
    const uint32_t number = start_.numbers[i];
    if (blocks_[number].is_live) end_life(number, i, {});
    put(number, block);
    if (phase == WorkPhase::kBackward && !work.is_recomputed && !work.is_workspace) {
      in_backward_.push_back({number, i});
      constexpr size_t kFew = 4096;
      if (in_backward_.size() > 2 * live_count_ + kFew) std::erase_if(in_backward_, is_gone());
    }
  }

  void free(size_t i, const AllocatorEvent& event) {
    Block& block = blocks_[start_.numbers[i]];
    if (!block.is_live) return;
    const SnapshotWork work = works_.of(event.stack);
    SnapshotLife end{.is_freed_in_backward = progress_.phase() == WorkPhase::kBackward};
    // The stack of a free is often that of the block, and then says nothing of the free.
    const bool is_own = event.stack != block.stack && event.stack != 0;
    if (is_own) {
      end = {.is_freed_in_backward = work.phase == WorkPhase::kBackward,
             .is_freed_in_setup = work.is_in_setup,
             .is_freed_in_optimizer = work.phase == WorkPhase::kOptimizer,
             .is_freed_by_zero_grad = work.clears_gradients};
      leave(work);
    } else if (event.stack == 0 && block.stack != 0 && kinds_.is_python_alone) {
      end.is_freed_in_backward = true;
    }
    see_whether_gradients_are_used(i);
    settle_backward();
    end_life(start_.numbers[i], i, end);
    block.is_live = false, --live_count_;
  }
  /// What frees memory elsewhere shows that backward, or an optimizer's step, is over.
  void leave(const SnapshotWork& work) {
    const WorkPhase now = progress_.phase();
    if (now != WorkPhase::kBackward && now != WorkPhase::kOptimizer) return;
    if (!work.has_python || work.phase == now || work.phase == WorkPhase::kDataLoading) return;
    if (!progress_.is_in_optimizer()) progress_.enter(WorkPhase::kNone, false);
  }

  /// A backward pass adds to them and a step reads them. Where an optimizer's step allocates
  /// nothing, and so is not seen, it is over when the next call of a model begins.
  void see_whether_gradients_are_used(size_t i) {
    const WorkPhase now = progress_.phase();
    if (now == WorkPhase::kBackward || now == WorkPhase::kOptimizer) {
      idle_since_.reset();
      was_in_optimizer_ = now == WorkPhase::kOptimizer;
    } else if (!idle_since_ && (was_in_optimizer_ || now == WorkPhase::kForward)) {
      idle_since_ = i, allocations_before_idle_ = allocations_;
      (was_in_optimizer_ ? passed_.step : passed_.call) = i;
    }
  }
  /// True: it was idle at the peak.
  bool add_idle(const Block& block, size_t i) {
    if (!idle_since_ || allocations_ == allocations_before_idle_) return false;
    const uint64_t begin = std::max<uint64_t>(*idle_since_, block.event + 1);  // kBefore + 1 is 0
    const uint32_t freed_at = trace_.events[i].stack;
    if (begin >= i) return false;
    idle_.push_back({begin, i, block.size_bytes, block.stack,
                     freed_at == block.stack ? 0 : freed_at});
    return peak_event_ && begin <= *peak_event_ && *peak_event_ < i;
  }
  /// Of a gradient that was live at the peak and not known to be idle.
  void add_earlier_gradient(const Block& block) {
    const auto is_earlier = [&](std::optional<size_t> passed) {
      return passed && block.event + 1 <= *passed;  // kBefore + 1 is 0
    };
    if (is_earlier(passed_at_peak_.step)) earlier_than_step_bytes_ += block.size_bytes;
    if (is_earlier(passed_at_peak_.call)) earlier_than_call_bytes_ += block.size_bytes;
  }

  /// Once a backward has ended: what it leaves are gradients, and parameters have their sizes.
  void settle_backward() {
    if (settled_ == progress_.counts().backwards_ended) return;
    settled_ = progress_.counts().backwards_ended;
    const auto gone = is_gone();
    for (const auto& made : in_backward_) {
      if (gone(made)) continue;
      Block& block = blocks_[made.first];
      block.is_gradient = true;
      Gradients& known = gradients_[block.size_bytes];
      known.most = std::max(known.most, ++known.live);
    }
    in_backward_.clear();
  }

  /// `life`: where it was freed, and nothing else.
  void tell_life(const Block& block, SnapshotLife* of) {
    SnapshotLife& life = *of;
    const ProgressCounts &now = progress_.counts(), &begun = begun_[block.begun].counts;
    life.size_bytes = block.size_bytes, life.was_before = block.event == kBefore;
    life.has_history = trace_.events.count(Action::kAlloc) != 0;
    life.met_oom = ooms_ != begun_[block.begun].ooms;
    life.calls = now.calls - begun.calls;
    // Where no optimizer is seen, a backward is a step.
    life.steps =
        now.steps != 0 ? now.steps - begun.steps : now.backwards_ended - begun.backwards_ended;
    life.outlived_backward = now.backwards_ended != begun.backwards_ended;
    life.outlived_optimizer = now.steps != begun.steps;
    life.outlived_recomputation = now.recomputations != begun.recomputations;
    life.met_backward = now.backwards_begun != begun.backwards_begun;
    life.is_after_call = begun.calls != 0;
    life.met_backward_before_call =
        life.met_backward && progress_.calls_before_backward(begun.backwards_begun) == begun.calls;
    life.trace_has_backward = kinds_.has_backward || now.backwards_begun != 0;
    life.is_unseen = block.is_unseen;
    if (auto site = sites_.find(block.stack); site != sites_.end()) {
      life.site_rises = site->second.rises, life.before = site->second.before;
    }
  }

  /// `end`: where it was freed, and nothing else.
  void end_life(uint32_t number, size_t i, const SnapshotLife& end) {
    const Block& block = blocks_[number];
    if (!is_absurd_) live_bytes_ -= block.size_bytes;
    SnapshotLife life = end;
    tell_life(block, &life);
    life.is_freed = true;
    const SnapshotRule rule = rule_of(works_.of(block.stack), block.phase, life);
    settle(block, rule);
    const bool is_gradient = facts_of(rule).category == Category::kGradient;
    const bool was_idle_at_peak = is_gradient && add_idle(block, i);
    if (block.is_gradient) --gradients_[block.size_bytes].live;
    if (auto site = sites_.find(block.stack); site != sites_.end()) {
      site->second.before = facts_of(rule).category;
    }
    if (trace_.has_times) {
      const uint64_t end = since_start(time_ns(i));  // a damaged file's may lie before its begin
      timeline_.add(static_cast<size_t>(facts_of(rule).category), block.size_bytes,
                    std::min(since_start(block.time_ns), end), end);
    }
    const bool is_after_peak = !peak_event_ || i > *peak_event_;
    if (!is_after_peak || !is_at_peak(block)) return;
    add(block, rule, &at_peak_);
    if (is_gradient && !was_idle_at_peak) add_earlier_gradient(block);
  }
  /// Nothing more will be known of it.
  void settle(const Block& block, SnapshotRule rule) {
    std::vector<RuledBlock>& settled = block.event == kBefore ? earlier_ : by_block_;
    if (block.ordinal >= settled.size()) return;
    settled[block.ordinal].rule = static_cast<uint8_t>(rule);
    settled[block.ordinal].phase = block.phase;
  }
  bool is_at_peak(const Block& block) const {
    return block.event == kBefore || (peak_event_ && block.event <= *peak_event_);
  }
  uint64_t since_start(uint64_t time) const {
    const uint64_t start = time_ns(0);
    return time > start ? time - start : 0;
  }
  static void add(const Block& block, SnapshotRule rule, HolderSums* sums) {
    sums->add(KnownAs::by_rule(rule, block.phase), block.stack, block.size_bytes);
  }

  /// What lives to the end: where the stack says little, the sizes of gradients say more.
  void end_open() {
    std::vector<SnapshotRule> rules(blocks_.size(), SnapshotRule::kNoRule);
    // One after the other as they lie in memory, where there are very many.
    const auto each_open = [&](const auto& see) {
      for (uint32_t number = 0; number < blocks_.size(); ++number) {
        if (blocks_[number].is_live) see(number);
      }
    };
    each_open([&](uint32_t number) {
      const Block& block = blocks_[number];
      SnapshotLife life;
      tell_life(block, &life);
      SnapshotRule& rule = rules[number] = rule_of(works_.of(block.stack), block.phase, life);
      const auto sized = gradients_.find(block.size_bytes);
      if (sized == gradients_.end()) return;
      const bool is_early = block.event == kBefore || begun_[block.begun].counts.calls == 0;
      if (rule == SnapshotRule::kSetUp) {
        rule = SnapshotRule::kSetUpWithGradient;
        ++sized->second.parameters;
      } else if (rule == SnapshotRule::kOptimizerKept) {
        ++sized->second.states;
      } else if (is_early && block.phase == WorkPhase::kNone &&
                 (rule == SnapshotRule::kNoRule || rule == SnapshotRule::kOutsideInput)) {
        sized->second.others.push_back(number);
      }
    });
    for (auto& [size, sized] : gradients_) name_by_size(&sized, &rules);
    each_open([&](uint32_t number) {
      const Block& block = blocks_[number];
      if (trace_.has_times) {
        timeline_.add_open(static_cast<size_t>(facts_of(rules[number]).category), block.size_bytes,
                           since_start(block.time_ns));
      }
      settle(block, rules[number]);
      add(block, rules[number], &at_end_);
      if (!is_at_peak(block)) return;
      add(block, rules[number], &at_peak_);
      if (facts_of(rules[number]).category == Category::kGradient) add_earlier_gradient(block);
    });
  }
  void name_by_size(Gradients* sized, std::vector<SnapshotRule>* rules) {
    // What was there first is more likely a parameter: kBefore is the highest number.
    std::ranges::sort(sized->others, {}, [&](uint32_t number) {
      return std::pair(blocks_[number].event + 1, blocks_[number].stack);
    });
    const size_t missing =
        sized->most > sized->parameters ? static_cast<size_t>(sized->most - sized->parameters) : 0;
    size_t next = std::min(missing, sized->others.size());
    for (size_t i = 0; i < next; ++i) (*rules)[sized->others[i]] = SnapshotRule::kSizeOfGradient;
    // An optimizer that steps and makes no state has made it before, the same number for each.
    constexpr size_t kMostStates = 3;
    size_t earlier = 0;
    for (size_t i = next; i < sized->others.size(); ++i) {
      earlier += blocks_[sized->others[i]].event == kBefore;
    }
    const bool may_be_state = progress_.counts().steps != 0 && sized->states == 0 &&
                              sized->most != 0 && earlier % sized->most == 0 &&
                              earlier / sized->most <= kMostStates;
    for (; may_be_state && next < sized->others.size(); ++next) {
      if (blocks_[sized->others[next]].event != kBefore) continue;
      (*rules)[sized->others[next]] = SnapshotRule::kSizeOfGradientAgain;
    }
  }

  DeviceCategories result(uint64_t peak_bytes) {
    DeviceCategories out;
    out.is_by_rules = true;
    out.at_peak = at_peak_.holders(), out.at_end = out.before_exit = at_end_.holders();
    out.is_known = sum_of_bytes(out.at_peak) == peak_bytes && !is_absurd_;
    if (!out.is_known) {
      out.at_peak.clear(), out.at_end.clear(), out.before_exit.clear();
      out.why_not = is_absurd_
                        ? "the sizes in the file exceed any real memory"
                        : "the events contradict each other: its blocks do not add up to the peak";
      return out;
    }
    out.idle_gradients = std::move(idle_);
    // Passes without an optimizer's step between them add to the same gradients.
    out.earlier_gradient_bytes =
        progress_.counts().steps != 0 ? earlier_than_step_bytes_ : earlier_than_call_bytes_;
    if (!trace_.has_times || trace_.events.empty()) return out;
    out.start_ns = time_ns(0);
    out.timeline = timeline_.samples(since_start(time_ns(trace_.events.size() - 1)));
    out.sample_ns = timeline_.width();
    return out;
  }

  const AllocatorTrace& trace_;
  const TraceStart& start_;
  const std::optional<uint64_t> peak_event_;
  SnapshotWorks works_;
  const StackKinds kinds_;
  SnapshotProgress progress_;
  std::vector<Block, LargePages<Block>> blocks_;  // by number
  std::vector<Begun> begun_;                      // in the order in which they came
  size_t live_count_ = 0;
  absl::flat_hash_map<uint32_t, Site> sites_;               // of forward, by stack
  std::vector<std::pair<uint32_t, uint64_t>> in_backward_;  // number and event
  uint64_t live_bytes_ = 0;
  bool is_absurd_ = false;
  uint32_t allocations_ = 0;
  std::vector<RuledBlock> by_block_, earlier_;  // by ordinal; empty where nobody asks
  uint32_t ooms_ = 0;
  uint32_t settled_ = 0;                     // backward passes that had ended
  std::map<uint64_t, Gradients> gradients_;  // by size
  std::optional<size_t> idle_since_ = 0;  // event from which on no gradient is in use
  bool was_in_optimizer_ = false;
  uint32_t allocations_before_idle_ = 0;
  std::vector<IdleGradient> idle_;
  /// Events at which the last optimizer's step had ended, and the last call after a backward began.
  struct Passed {
    std::optional<size_t> step, call;
  };
  Passed passed_, passed_at_peak_;
  uint64_t earlier_than_step_bytes_ = 0, earlier_than_call_bytes_ = 0;
  HolderSums at_peak_, at_end_;
  DifferenceSeries<kCategories> timeline_{10};
};

}  // namespace

DeviceCategories categories_of_trace(const AllocatorSnapshot& snapshot, size_t index,
                                     const TraceStart& start, std::optional<uint64_t> peak_event,
                                     uint64_t peak_bytes, uint16_t device, BlockKeeper* keeper) {
  return Categorizer(snapshot, index, start, peak_event).run(peak_bytes, device, keeper);
}

std::vector<RuledBlock> rules_of_trace(const AllocatorSnapshot& snapshot, size_t index,
                                       const TraceStart& start) {
  return Categorizer(snapshot, index, start, std::nullopt).run_by_block();
}

}  // namespace gpumemprof
