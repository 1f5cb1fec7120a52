// What one pass over the events gathers beside the live state; analyze_source() makes an Analysis
// of it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/categories/categories.h"
#include "analysis/driver/driver_memories.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/pass/held_bound.h"
#include "analysis/pass/unasked_bytes.h"
#include "analysis/ranks/job_pass.h"
#include "trace/last_frees.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {

/// What a live block was allocated for.
struct OfStep {
  int64_t step;
  uint64_t bytes;
};

/// What is gathered for a device beside its LiveState.
struct Gathered {
  Timeline timeline;
  Turns turns;
  HeldBound held;
  absl::flat_hash_map<uint32_t, Temporary> temporaries;
  std::array<LifetimeBin, kLifetimeBins> lifetimes = {};
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
  uint64_t own_peak_event = 0;
  uint64_t last_alloc_event = 0;
  std::vector<Refusal> refusals;
  UnaskedBytes unasked;  // of TensorFlow's pools
  StepSums steps;
  absl::flat_hash_map<uint64_t, OfStep> live_in_steps;  // by address
};

/// Sees each event after its LiveState has taken it. All of it is inline: it runs once an event.
class Gatherer : public LiveObserver {
 public:
  Gatherer(const AnalysisOptions& options, const LiveState& state,
           std::vector<ThreadAnalysis>& threads, bool has_times, MomentGatherer& moments,
           Categories* categories = nullptr)
      : options_(options),
        moments_(moments),
        state_(state),
        threads_(threads),
        has_times_(has_times),
        categories_(categories) {}

  /// What else sees each event; null: nobody.
  void set_leaks(LeakGatherer* leaks, HolderStacks* holders, const Tables& tables) {
    leaks_ = leaks, holders_ = holders, tables_ = &tables;
  }
  void set_tables(const Tables& tables) { tables_ = &tables; }
  void set_job(JobPass* job) { job_ = job; }

  void on_batch(const EventBatch& batch, size_t device_count) {
    batch_ = &batch;
    next_requested_ = 0;
    if (start_ns_ == kUnset) start_ns_ = batch.time_ns.front();
    while (devices.size() < device_count) {
      const size_t i = devices.size();
      devices.emplace_back().timeline =
          Timeline(start_ns_, options_.timeline_buckets, state_.devices()[i].live_bytes);
    }
    if (!has_steps_ && !batch.step.empty()) begin_steps();
    has_categories_ = categories_ != nullptr && categories_->is_active();
    while (tables_ && process_of_.size() < tables_->devices.size()) {
      const uint32_t process = tables_->devices[process_of_.size()].process;
      process_of_.push_back(process < tables_->processes.size() ? process : 0);  // may name none
    }
  }

  void on_soon(uint16_t index, uint32_t stack) {
    if (leaks_) leaks_->prefetch(index, stack);
  }

  void on_alloc(size_t i, uint16_t index, const DeviceState& state) {
    Gathered& device = devices[index];
    const uint64_t size = batch_->size_bytes[i];
    last_frees_.on_alloc(process_of(index));
    device.held.add(held(i, size, 0, state));
    if (finds_leaks_in(index)) {
      look_at_holders(i);
      if (holders_->awaits_returns())
        holders_->follow(*tables_, batch_->thread[i], batch_->stack[i]);
      leaks_->on_alloc(i, index);
    }
    device.timeline.add_alloc(seen(device, i), state.live_bytes, size);
    if (has_steps_) allocate_in_step(device, i, size);
    if (has_categories_) categories_->on_alloc(i, index, state);
    if (is_tensorflow_pool(index)) device.unasked.on_alloc(batch_->address[i], unasked(i, size));
    if (state.peak_event == batch_->first_event + i) {
      device.own_peak_event = event_count(state) - 1;
      device.unasked.on_peak();
    }
    device.last_alloc_event = batch_->first_event + i;
    if (!device.refusals.empty()) device.refusals.back().allocated_after_bytes += size;
    const uint32_t thread = batch_->thread[i];
    if (thread < threads_.size() && !is_of_driver(index)) {
      ++threads_[thread].alloc_count;
      threads_[thread].alloc_bytes += size;
    }
    on_level(i, index, state);
  }

  void on_free(size_t i, uint16_t index, const DeviceState& state, const LiveBlock& block) {
    devices[index].held.add(held(i, 0, block.size_bytes, state));
    last_frees_.on_free(index, process_of(index), block);
    devices[index].unasked.on_free(batch_->address[i]);
    end_block(i, index, state, block);
    on_level(i, index, state);
  }

  void on_other(size_t i, uint16_t index, const DeviceState& state) {
    Gathered& device = devices[index];
    device.timeline.add(seen(device, i), state.live_bytes);
    device.held.add(held(i, 0, 0, state));
    if (batch_->action[i] == Action::kOom) {
      const uint64_t number = device.refusals.empty() ? 0 : device.refusals.back().number + 1;
      if (device.refusals.size() == kMostRefusals) device.refusals.pop_back();
      if (device.refusals.size() > kMostWithHolders) device.refusals.back().holders = {};
      device.refusals.push_back({.size_bytes = batch_->size_bytes[i],
                                 .event = batch_->first_event + i,
                                 .stack = batch_->stack[i],
                                 .number = number,
                                 .live_bytes = state.live_bytes,
                                 .thread = batch_->thread[i]});
      // Goes through all stacks: not for requests that are refused over and over.
      if (number < kMostRefusals) device.refusals.back().holders = state_.holders_now(index);
    }
    on_level(i, index, state);
  }

  /// Of a device, since the last allocation of its process.
  std::span<const LiveBlock> last_frees(uint16_t index) const {
    return last_frees_.of(index, process_of(index));
  }

  std::vector<Gathered> devices;

 private:
  static constexpr uint64_t kUnset = UINT64_MAX;
  static constexpr size_t kMostWithHolders = 8;  // refusals of a device, beside the last

  uint32_t process_of(uint16_t index) const {
    return index < process_of_.size() ? process_of_[index] : 0;
  }
  static uint64_t event_count(const DeviceState& state) {
    uint64_t sum = 0;
    for (uint64_t n : state.actions) sum += n;
    return sum;
  }
  /// Sums, whose gatherer has no tables, are of TensorFlow's allocators.
  bool is_tensorflow_pool(uint16_t index) const {
    return tables_ == nullptr ||
           (index < tables_->devices.size() && is_tensorflow(tables_->devices[index]));
  }
  /// Of an event of the batch; to be asked in their order.
  uint64_t unasked(size_t i, uint64_t size) {
    const std::vector<RequestedSize>& all = batch_->requested;
    while (next_requested_ < all.size() && all[next_requested_].event < i) ++next_requested_;
    if (next_requested_ == all.size() || all[next_requested_].event != i) return 0;
    return size - std::min(size, all[next_requested_].bytes);
  }
  void on_level(size_t i, uint16_t index, const DeviceState& state) {
    devices[index].turns.add(batch_->time_ns[i], state.live_bytes, state.peak_bytes);
    moments_.on_level(index, state.live_bytes);
    if (job_) job_->on_level(index, state.live_bytes, batch_->time_ns[i]);
    if (i == moments_.next()) [[unlikely]]
      moments_.after_event();
  }
  void end_block(size_t i, uint16_t index, const DeviceState& state, const LiveBlock& block) {
    Gathered& device = devices[index];
    const uint64_t time = seen(device, i);
    if (finds_leaks_in(index)) {
      if (batch_->time_ns[i] >= holders_->next_ns()) [[unlikely]] {
        const HolderStacks::Ended ended{index, batch_->address[i], block};
        look_at_holders(i, &ended);
      }
      leaks_->on_free(index, block);
    }
    device.timeline.add(time, state.live_bytes);
    if (has_steps_) free_in_step(device, i, block);
    if (has_categories_) categories_->on_free(i, index, state);
    if (!has_times_ || block.time_ns == LiveBlock::kUnknownTime) return;
    const uint64_t age = time > block.time_ns ? time - block.time_ns : 0;
    LifetimeBin& bin = device.lifetimes[std::bit_width(age)];
    ++bin.count;
    bin.bytes += block.size_bytes;
    if (age > options_.temporary_ns) return;
    Temporary& temporary = device.temporaries[block.stack];
    ++temporary.count;
    temporary.bytes += block.size_bytes;
  }

  /// What the driver hands out holds what is used already.
  bool is_of_driver(uint16_t index) const {
    return tables_ && index < tables_->devices.size() && is_driver_memory(tables_->devices[index]);
  }
  bool finds_leaks_in(uint16_t index) const { return leaks_ && !is_of_driver(index); }
  /// The event itself has changed the state already.
  void look_at_holders(size_t i, const HolderStacks::Ended* ended = nullptr) {
    while (batch_->time_ns[i] >= holders_->next_ns()) holders_->take(*tables_, state_, ended);
  }
  /// What is live by now was allocated for none.
  void begin_steps() {
    has_steps_ = true;
    for (size_t i = 0; i < devices.size(); ++i) {
      state_.devices()[i].blocks.each([&](uint64_t address, const LiveBlock& block) {
        devices[i].live_in_steps[address] = {kNoStep, block.size_bytes};
        devices[i].steps.add_alloc(kNoStep, batch_->first_event, block.size_bytes);
      });
    }
  }
  void allocate_in_step(Gathered& device, size_t i, uint64_t size) {
    const int64_t step = batch_->step.empty() ? kNoStep : batch_->step[i];
    const uint64_t event = batch_->first_event + i;
    const OfStep made{step, size};
    auto [known, added] = device.live_in_steps.try_emplace(batch_->address[i], made);
    if (!added) {  // its free was missed
      device.steps.add_free(known->second.step, event, known->second.bytes);
      known->second = made;
    }
    device.steps.add_alloc(step, event, size);
  }
  void free_in_step(Gathered& device, size_t i, const LiveBlock& block) {
    auto known = device.live_in_steps.find(batch_->address[i]);
    if (known == device.live_in_steps.end()) return;
    device.steps.add_free(known->second.step, batch_->first_event + i, block.size_bytes);
    device.live_in_steps.erase(known);
  }
  HeldBound::Event held(size_t i, uint64_t allocated_bytes, uint64_t freed_bytes,
                        const DeviceState& state) const {
    return {batch_->time_ns[i], batch_->thread[i], allocated_bytes, freed_bytes, state.live_bytes,
            state.peak_bytes};
  }

  uint64_t seen(Gathered& device, size_t i) {
    const uint64_t time = batch_->time_ns[i];
    if (device.first_time_ns == 0) device.first_time_ns = time;
    device.last_time_ns = time;
    return time;
  }

  const AnalysisOptions& options_;
  MomentGatherer& moments_;
  const LiveState& state_;
  std::vector<ThreadAnalysis>& threads_;
  const bool has_times_;          // else no block has an age
  Categories* const categories_;  // may be null
  bool has_categories_ = false;
  LeakGatherer* leaks_ = nullptr;
  HolderStacks* holders_ = nullptr;
  const Tables* tables_ = nullptr;
  JobPass* job_ = nullptr;  // null: there are no ranks
  std::vector<uint32_t> process_of_;  // by device
  LastFrees<LiveBlock> last_frees_;
  bool has_steps_ = false;  // the source has shown one
  const EventBatch* batch_ = nullptr;
  size_t next_requested_ = 0;  // in the batch
  uint64_t start_ns_ = kUnset;
};

}  // namespace gpumemprof
