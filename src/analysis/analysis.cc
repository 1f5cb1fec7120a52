#include "analysis/analysis.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <bit>

#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

/// What is gathered for a device beside its LiveState.
struct Gathered {
  Timeline timeline;
  absl::flat_hash_map<uint32_t, Temporary> temporaries;
  std::array<LifetimeBin, kLifetimeBins> lifetimes = {};
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
};

class Gatherer : public LiveObserver {
 public:
  Gatherer(const AnalysisOptions& options, const LiveState& state,
           std::vector<ThreadAnalysis>& threads, bool has_times)
      : options_(options), state_(state), threads_(threads), has_times_(has_times) {}

  void on_batch(const EventBatch& batch, size_t device_count) {
    batch_ = &batch;
    if (start_ns_ == kUnset) start_ns_ = batch.time_ns.front();
    while (devices.size() < device_count) {
      const size_t i = devices.size();
      devices.emplace_back().timeline =
          Timeline(start_ns_, options_.timeline_buckets, state_.devices()[i].live_bytes);
    }
  }

  void on_alloc(size_t i, uint16_t index, const DeviceState& state) {
    Gathered& device = devices[index];
    const uint64_t size = batch_->size_bytes[i];
    device.timeline.add_alloc(seen(device, i), state.live_bytes, size);
    const uint32_t thread = batch_->thread[i];
    if (thread < threads_.size()) {
      ++threads_[thread].alloc_count;
      threads_[thread].alloc_bytes += size;
    }
  }

  void on_free(size_t i, uint16_t index, const DeviceState& state, const LiveBlock& block) {
    Gathered& device = devices[index];
    const uint64_t time = seen(device, i);
    device.timeline.add(time, state.live_bytes);
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

  void on_other(size_t i, uint16_t index, const DeviceState& state) {
    Gathered& device = devices[index];
    device.timeline.add(seen(device, i), state.live_bytes);
  }

  std::vector<Gathered> devices;

 private:
  static constexpr uint64_t kUnset = UINT64_MAX;

  uint64_t seen(Gathered& device, size_t i) {
    const uint64_t time = batch_->time_ns[i];
    if (device.first_time_ns == 0) device.first_time_ns = time;
    device.last_time_ns = time;
    return time;
  }

  const AnalysisOptions& options_;
  const LiveState& state_;
  std::vector<ThreadAnalysis>& threads_;
  const bool has_times_;  // else no block has an age
  const EventBatch* batch_ = nullptr;
  uint64_t start_ns_ = kUnset;
};

void take_temporaries(Gathered& gathered, DeviceAnalysis* device) {
  for (auto& [stack, temporary] : gathered.temporaries) {
    device->temporaries.push_back({stack, temporary.count, temporary.bytes});
    device->temporary_count += temporary.count;
    device->temporary_bytes += temporary.bytes;
  }
  std::sort(device->temporaries.begin(), device->temporaries.end(),
            [](const Temporary& a, const Temporary& b) {
              return a.count != b.count ? a.count > b.count : a.stack < b.stack;
            });
}

std::vector<Holder> totals_of(const DeviceState& state) {
  std::vector<Holder> totals;
  for (const auto& [stack, site] : state.sites) {
    if (site.total_count != 0) totals.push_back({stack, site.total_bytes, site.total_count});
  }
  std::sort(totals.begin(), totals.end(), [](const Holder& a, const Holder& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  return totals;
}

bool had_events(const DeviceFigures& figures) {
  return std::any_of(std::begin(figures.actions), std::end(figures.actions),
                     [](uint64_t n) { return n != 0; });
}

void take_devices(const LiveState& state, Gatherer& gatherer, const Tables& tables,
                  Analysis* analysis) {
  analysis->processes.resize(tables.processes.size());
  gatherer.devices.resize(state.devices().size());  // a device of the checkpoint alone has no event
  for (size_t i = 0; i < state.devices().size(); ++i) {
    const DeviceState& figures = state.devices()[i];
    if (!had_events(figures)) continue;
    Gathered& gathered = gatherer.devices[i];
    DeviceAnalysis& device = analysis->devices.emplace_back();
    device.device = static_cast<uint16_t>(i);
    device.figures = figures;
    device.holders_at_peak = state.holders_at_peak(device.device);
    device.holders_at_end = state.holders_now(device.device);
    device.totals = totals_of(figures);
    device.lifetimes = gathered.lifetimes;
    device.timeline = std::move(gathered.timeline);
    device.timeline.finish(analysis->last_time_ns);
    device.first_time_ns = gathered.first_time_ns;
    device.last_time_ns = gathered.last_time_ns;
    take_temporaries(gathered, &device);
    if (i >= tables.devices.size() || tables.devices[i].process >= analysis->processes.size())
      continue;
    ProcessAnalysis& process = analysis->processes[tables.devices[i].process];
    for (uint64_t n : figures.actions) process.events += n;
    process.alloc_count += figures.actions[static_cast<size_t>(Action::kAlloc)];
    process.alloc_bytes += figures.total_bytes;
    process.unmatched_frees += figures.unmatched_frees;
  }
}

uint64_t recording_start(const Tables& tables, uint64_t first_event_ns) {
  uint64_t start = UINT64_MAX;
  for (const Process& process : tables.processes) {
    if (process.first_time_ns != 0) start = std::min(start, process.first_time_ns);
  }
  return start == UINT64_MAX ? first_event_ns : start;
}

}  // namespace

Result<Analysis> analyze_source(EventSource& source, const AnalysisOptions& options) {
  Analysis analysis;
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) {
    state = *before;
    analysis.oldest_dropped = before->event_count() != 0;
  }
  Gatherer gatherer(options, state, analysis.threads, source.info().can.times);
  EventBatch batch;
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    if (batch.size() == 0) continue;
    if (analysis.events_read == 0) analysis.first_time_ns = batch.time_ns.front();
    analysis.last_time_ns = std::max(analysis.last_time_ns, batch.time_ns.back());
    analysis.events_read += batch.size();
    analysis.threads.resize(source.tables().threads.size());
    state.apply_observed(batch, gatherer);
    if (options.on_progress) options.on_progress(source.progress());
  }
  analysis.source = source.info();
  analysis.events = state.event_count();
  analysis.temporary_ns = options.temporary_ns;
  analysis.start_time_ns = recording_start(source.tables(), analysis.first_time_ns);
  take_devices(state, gatherer, source.tables(), &analysis);
  analysis.threads.resize(source.tables().threads.size());
  analysis.loss = source.loss();
  return analysis;
}

const DeviceAnalysis* main_device(const Analysis& analysis, const Tables& tables) {
  const DeviceAnalysis* best = nullptr;
  bool best_is_accelerator = false;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.figures.peak_bytes == 0) continue;
    const bool is_known = device.device < tables.devices.size();
    // The regions that a pool is made of hold its blocks, which are what was asked for.
    if (is_known && tables.devices[device.device].layer == Layer::kDriver) continue;
    const bool accelerator = is_known && !is_host_memory(tables.devices[device.device]);
    const bool better = best == nullptr || accelerator > best_is_accelerator ||
                        (accelerator == best_is_accelerator &&
                         device.figures.peak_bytes > best->figures.peak_bytes);
    if (!better) continue;
    best = &device;
    best_is_accelerator = accelerator;
  }
  return best;
}

}  // namespace gpumemprof
