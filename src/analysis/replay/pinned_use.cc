#include "analysis/replay/snapshot_troubles.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <map>

namespace gpumemprof {
namespace {

struct PinnedBlock {
  uint64_t bytes = 0, requested_bytes = 0;
  uint32_t stack = 0;
};

template <class Key>
void count_most(absl::flat_hash_map<Key, uint64_t>* sums, Key key, uint64_t bytes, uint64_t* most,
                Key* best) {
  const uint64_t sum = (*sums)[key] += bytes;
  if (sum <= *most) return;
  *most = sum;
  *best = key;
}

class PinnedWalk {
 public:
  PinnedWalk(const AllocatorTrace& trace, const TraceStart& start) : trace_(trace), start_(start) {
    for (const AllocatorSegment& segment : trace.segments) {
      out_.taken_bytes += segment.size_bytes;
      for (const AllocatorBlock& block : segment.blocks) sizes_[block.address] = block.size_bytes;
      out_.blocks += segment.blocks.size();
    }
    for (const EarlierBlock& block : start.blocks)
      came(block.address, block.requested_bytes, block.stack);
  }

  PinnedUse run() {
    look_for_peak(0);
    for (size_t i = 0; i < trace_.events.size(); ++i) step(i);
    at_peak();
    out_.distinct_sizes = asked_.size();
    return out_;
  }

 private:
  uint64_t size_of(uint64_t address, uint64_t requested) const {
    const auto known = sizes_.find(address);
    return std::max(known == sizes_.end() ? 0 : known->second, requested);
  }

  /// What the block adds to what was taken; 0 where it was there.
  uint64_t came(uint64_t address, uint64_t requested, uint32_t stack) {
    const uint64_t bytes = size_of(address, requested);
    went(address);
    live_[address] = {bytes, requested, stack};
    used_ += bytes;
    return seen_.insert(address).second ? bytes : 0;
  }

  void went(uint64_t address) {
    const auto live = live_.find(address);
    if (live == live_.end()) return;
    used_ -= live->second.bytes;
    live_.erase(live);
  }

  void step(size_t index) {
    const AllocatorEvent event = trace_.events[index];
    if (event.action == Action::kAlloc) {
      asked_.insert(event.size_bytes);
      const uint64_t fresh = came(event.address, event.size_bytes, event.stack);
      if (fresh != 0 && index >= trace_.events.size() / 2) {
        out_.late_bytes += fresh;
        count_most(&late_, event.stack, fresh, &most_late_, &out_.late_stack);
      }
      look_for_peak(index + 1);
    } else if (start_.facts.ends_block(event)) {
      went(event.address);
    } else if (event.action == Action::kSegmentFree) {
      out_.returned_bytes += event.size_bytes;
      seen_.erase(event.address);
    }
  }

  void look_for_peak(size_t events) {
    if (used_ <= out_.peak_used_bytes) return;
    out_.peak_used_bytes = used_;
    peak_events_ = events;
  }

  /// Who was live then: what is live now, the events after it undone in another walk.
  void at_peak() {
    live_.clear(), used_ = 0;
    for (const EarlierBlock& block : start_.blocks)
      came(block.address, block.requested_bytes, block.stack);
    for (size_t i = 0; i < peak_events_; ++i) {
      const AllocatorEvent event = trace_.events[i];
      if (event.action == Action::kAlloc) {
        came(event.address, event.size_bytes, event.stack);
      } else if (start_.facts.ends_block(event)) {
        went(event.address);
      }
    }
    std::map<uint32_t, uint64_t> rounding;
    for (const auto& [address, block] : live_) {
      ++out_.blocks_at_peak;
      out_.requested_at_peak_bytes += block.requested_bytes;
      rounding[block.stack] += block.bytes - block.requested_bytes;
    }
    uint64_t most = 0;
    for (const auto& [stack, bytes] : rounding) {  // of equal ones the first stack
      if (bytes > most) most = bytes, out_.rounded_stack = stack;
    }
  }

  const AllocatorTrace& trace_;
  const TraceStart& start_;
  PinnedUse out_;
  absl::flat_hash_map<uint64_t, uint64_t> sizes_;  // of the blocks at the end, by address
  absl::flat_hash_map<uint64_t, PinnedBlock> live_;
  absl::flat_hash_set<uint64_t> seen_;  // blocks that the driver gave
  absl::flat_hash_set<uint64_t> asked_;
  absl::flat_hash_map<uint32_t, uint64_t> late_;
  uint64_t used_ = 0, most_late_ = 0;
  size_t peak_events_ = 0;  // of which the highest use is right after
};

}  // namespace

PinnedUse pinned_use(const AllocatorTrace& trace, const TraceStart& start) {
  return PinnedWalk(trace, start).run();
}

}  // namespace gpumemprof
