#include "estimate/simulate.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "allocator/driver_addresses.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMostLiveBytes = 1ull << 60;

class StepSimulation {
 public:
  StepSimulation(const StepTrace& trace, const AllocatorConfig& config, const Release& release,
                 const LibraryTable& table)
      : trace_(trace),
        table_(table),
        simulator_(config, release, &addresses_),
        blocks_(trace.storages, kNoBlock),
        sizes_(trace.storages, 0) {}

  StepPeaks run() {
    for (at_ = 0; at_ < trace_.events.size() && !ended(); ++at_) step(trace_.events[at_]);
    const AllocatorStatistics& end = simulator_.statistics();
    peaks_.allocated_bytes = end.allocated.peak;
    peaks_.reserved_bytes = end.reserved.peak;
    peaks_.num_alloc_retries = end.num_alloc_retries;
    peaks_.is_beyond_measure |= simulator_.gave_up();
    return peaks_;
  }

 private:
  bool ended() const { return peaks_.first_oom_event || peaks_.is_beyond_measure; }

  void step(const TracedEvent& event) {
    switch (event.kind) {
      case TracedEvent::Kind::kAlloc:
        return alloc(event);
      case TracedEvent::Kind::kFree:
        live_bytes_ -= sizes_[event.index];
        simulator_.free_completed(blocks_[event.index]);
        return;
      case TracedEvent::Kind::kConvolution:
        return convolution(trace_.convolutions[event.index]);
      case TracedEvent::Kind::kProduct:
        return product();
      case TracedEvent::Kind::kPhase:
        is_backward_ = event.phase == StepPhase::kBackward;
        return;
      case TracedEvent::Kind::kEmptyCache:
        return simulator_.empty_cache();
    }
  }

  void alloc(const TracedEvent& event) {
    if (live_bytes_ + event.bytes > kMostLiveBytes) {
      peaks_.is_beyond_measure = true;
      return;
    }
    live_bytes_ += event.bytes;
    sizes_[event.index] = event.bytes;
    if (live_bytes_ > peaks_.live_bytes) {
      peaks_.live_bytes = live_bytes_;
      peaks_.live_event = at_;
    }
    blocks_[event.index] = malloc(event.bytes, event.stream);
    if (blocks_[event.index] == kNoBlock) peaks_.first_oom_event = at_;
  }

  BlockId malloc(uint64_t bytes, uint16_t stream) {
    return simulator_.malloc({.requested_bytes = bytes, .stream = stream});
  }

  /// Each call asks for its workspace. At the first of a shape algorithms are tried, and the cache
  /// is given back after it. Where it does not fit, an algorithm is taken that needs less.
  void convolution(const ConvolutionCall& call) {
    const auto wanted = workspace_bytes(call, table_);
    if (!wanted) return;
    const bool is_trial = trace_.facts.cudnn_benchmark &&
                          tried_.insert({call.shape, static_cast<uint8_t>(call.part)}).second;
    workspace(std::min(*wanted, kMostLiveBytes));
    if (is_trial && table_.empties_cache_after_trials) simulator_.empty_cache();
  }

  void workspace(uint64_t bytes) {
    BlockId block = kNoBlock;
    for (; bytes != 0 && block == kNoBlock; bytes /= 2) {
      block = malloc(bytes, 0);
      if (block != kNoBlock) peaks_.workspace_bytes = std::max(peaks_.workspace_bytes, bytes);
    }
    if (block != kNoBlock) simulator_.free_completed(block);
  }

  void product() {
    bool& has_handle = is_backward_ ? backward_has_handle_ : forward_has_handle_;
    if (has_handle) return;
    has_handle = true;
    if (table_.product_workspace_bytes != 0) malloc(table_.product_workspace_bytes, 0);
  }

  const StepTrace& trace_;
  const LibraryTable& table_;
  FallingAddresses addresses_;
  Simulator simulator_;
  std::vector<BlockId> blocks_;
  std::vector<uint64_t> sizes_;
  absl::flat_hash_set<std::pair<uint32_t, uint8_t>> tried_;
  bool is_backward_ = false, forward_has_handle_ = false, backward_has_handle_ = false;
  uint64_t live_bytes_ = 0, at_ = 0;
  StepPeaks peaks_;
};

}  // namespace

StepPeaks simulate_steps(const StepTrace& trace, const AllocatorConfig& config,
                         const Release& release, const LibraryTable& table) {
  return StepSimulation(trace, config, release, table).run();
}

}  // namespace gpumemprof
