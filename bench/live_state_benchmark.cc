// Events a second of the analysis: LiveState alone, and the whole single-pass analysis, without
// reading a file. Half the events allocate, half free a random live block.
#include <benchmark/benchmark.h>

#include <random>

#include "analysis/analysis.h"
#include "trace/live_state.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

EventBatch random_events(size_t live, size_t count) {
  std::mt19937_64 random(1);
  EventBatch batch;
  batch.reserve(count);
  std::vector<uint64_t> addresses;
  uint64_t time = 1'000'000'000, next_address = 0x7f0000000000;
  while (batch.size() < count) {
    time += random() % 2000;
    const bool allocate = addresses.size() < live || random() % 2 == 0;
    EventRow row{.time_ns = time, .stack = static_cast<uint32_t>(random() % 600 + 1)};
    if (allocate) {
      row.address = next_address;
      row.size_bytes = (random() % 65536 + 1) * 64;
      next_address += row.size_bytes;
      addresses.push_back(row.address);
    } else {
      const size_t pick = random() % addresses.size();
      row.action = Action::kFreeCompleted;
      row.address = addresses[pick];
      addresses[pick] = addresses.back();
      addresses.pop_back();
    }
    append(&batch, row);
  }
  return batch;
}

/// Hands out the same prepared batches again and again without copying columns event by event.
std::vector<EventBatch> slices(const EventBatch& events) {
  std::vector<EventBatch> out;
  MemorySource source(events, 16384);
  EventBatch batch;
  while (*source.next(&batch)) out.push_back(batch);
  return out;
}

class SliceSource : public MemorySource {
 public:
  explicit SliceSource(const std::vector<EventBatch>& slices) : MemorySource({}), slices_(slices) {
    mutable_tables().devices.resize(1);
    mutable_tables().processes.resize(1);
    mutable_tables().threads.resize(1);
  }
  Result<bool> next(EventBatch* batch) override {
    if (at_ == slices_.size()) return false;
    *batch = slices_[at_++];
    return true;
  }

 private:
  const std::vector<EventBatch>& slices_;
  size_t at_ = 0;
};

void live_state(benchmark::State& bench) {
  const auto batches = slices(random_events(static_cast<size_t>(bench.range(0)), 8'000'000));
  for (auto _ : bench) {
    LiveState state;
    for (const EventBatch& batch : batches) state.apply(batch);
    benchmark::DoNotOptimize(state.event_count());
  }
  bench.SetItemsProcessed(bench.iterations() * 8'000'000);
}

void whole_analysis(benchmark::State& bench) {
  const auto batches = slices(random_events(static_cast<size_t>(bench.range(0)), 8'000'000));
  for (auto _ : bench) {
    SliceSource source(batches);
    auto analysis = analyze_source(source, {});
    benchmark::DoNotOptimize(analysis);
  }
  bench.SetItemsProcessed(bench.iterations() * 8'000'000);
}

BENCHMARK(live_state)->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(whole_analysis)->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpumemprof
