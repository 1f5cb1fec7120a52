// Events a second of replaying a snapshot under its recorded settings, and of a what-if. The traces
// are made by the simulator itself: what a training loop with `live` blocks would have recorded.
#include <benchmark/benchmark.h>

#include <random>

#include "allocator/replay.h"

namespace gpumemprof {
namespace {

/// Allocations and frees of random live blocks, of sizes that recur, each free in two events.
AllocatorTrace made_trace(size_t live, size_t count, bool expandable) {
  AllocatorConfig config;
  config.expandable_segments = expandable;
  Simulator simulator(config, newest_release());
  simulator.keep_driver_calls(true);
  std::mt19937_64 random(1);
  std::vector<uint64_t> sizes(200);
  for (uint64_t& size : sizes) size = 1 + (random() >> random() % 24) % (8 * kMiB);
  std::vector<BlockId> blocks;
  AllocatorTrace trace;
  const auto event = [&](Action action, uint64_t address, uint64_t size) {
    trace.events.append({.address = address, .size_bytes = size, .action = action});
  };
  while (trace.events.size() < count) {
    if (blocks.size() < live || random() % 2 == 0) {
      const uint64_t size = sizes[random() % sizes.size()];
      const BlockId id = simulator.malloc({.requested_bytes = size});
      for (const DriverCall& call : simulator.driver_calls()) {
        const bool mapped = call.kind == DriverCall::Kind::kMap;
        event(mapped ? Action::kSegmentMap : Action::kSegmentAlloc, call.address, call.size_bytes);
      }
      simulator.driver_calls().clear();
      event(Action::kAlloc, simulator.block(id).address, size);
      blocks.push_back(id);
    } else {
      const size_t pick = random() % blocks.size();
      const SimulatedBlock block = simulator.block(blocks[pick]);
      event(Action::kFreeRequested, block.address, block.requested_bytes);
      event(Action::kFreeCompleted, block.address, block.requested_bytes);
      simulator.free_completed(blocks[pick]);
      blocks[pick] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const SegmentView& view : segments(simulator)) {
    AllocatorSegment segment;
    segment.address = view.address;
    segment.size_bytes = view.size_bytes;
    segment.is_large = view.is_large;
    segment.is_expandable = view.is_expandable;
    for (BlockId id : view.blocks) {
      const SimulatedBlock& block = simulator.block(id);
      const bool is_free = block.state == SimulatedBlock::State::kFree;
      segment.blocks.push_back({.address = block.address,
                                .size_bytes = block.size_bytes,
                                .requested_bytes = block.requested_bytes,
                                .state = is_free ? BlockState::kFree : BlockState::kAllocated});
    }
    trace.segments.push_back(std::move(segment));
  }
  return trace;
}

constexpr size_t kEvents = 1'000'000;

void replaying(benchmark::State& state) {
  const auto trace = made_trace(static_cast<size_t>(state.range(0)), kEvents, state.range(1) != 0);
  RecordedSettings settings;
  settings.expandable_segments = state.range(1) != 0;
  for (auto _ : state) {
    const ReplayResult result = replay_recorded(trace, settings, newest_release());
    if (result.matched != result.alloc_addresses) state.SkipWithError("not the same addresses");
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * trace.events.size()));
}
BENCHMARK(replaying)
    ->ArgNames({"live", "expandable"})
    ->ArgsProduct({{100, 1000, 10000, 100000}, {0, 1}});

void asking_what_if(benchmark::State& state) {
  const auto trace = made_trace(static_cast<size_t>(state.range(0)), kEvents, false);
  AllocatorConfig config;
  config.expandable_segments = true;
  config.capacity_bytes = 1ull << 40;
  for (auto _ : state) {
    benchmark::DoNotOptimize(what_if(trace, config, newest_release()).peak_reserved_bytes);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * trace.events.size()));
}
BENCHMARK(asking_what_if)->ArgName("live")->Arg(1000)->Arg(100000);

}  // namespace
}  // namespace gpumemprof
