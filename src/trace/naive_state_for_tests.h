// LiveState a second time, as slow and plain as possible: the truth that tests compare with.
#pragma once

#include <map>
#include <random>
#include <vector>

#include "trace/memory_source.h"

namespace gpumemprof {

struct NaiveState {
  struct Device {
    std::map<uint64_t, EventRow> blocks;
    std::map<uint64_t, EventRow> at_peak;  ///< a copy of the blocks at the peak
    uint64_t peak_bytes = 0, peak_event = 0, unmatched = 0, repeated = 0;
    bool has_requests = false;

    uint64_t live_bytes() const {
      uint64_t sum = 0;
      for (const auto& [address, block] : blocks) sum += block.size_bytes;
      return sum;
    }
  };
  std::map<uint16_t, Device> devices;

  void apply(const EventRow& row, uint64_t number) {
    Device& device = devices[row.device];
    if (row.action == Action::kAlloc) {
      device.repeated += device.blocks.count(row.address);
      device.blocks[row.address] = row;
      if (device.live_bytes() > device.peak_bytes) {
        device.peak_bytes = device.live_bytes();
        device.peak_event = number;
        device.at_peak = device.blocks;
      }
    } else if (is_free(row.action)) {
      const bool is_unmatched = device.blocks.erase(row.address) == 0;
      // The second half of a free that ended its block already.
      const bool is_second = row.action == Action::kFreeCompleted && device.has_requests;
      device.unmatched += is_unmatched && !is_second;
      device.has_requests |= row.action == Action::kFreeRequested;
    }
  }

  static std::map<uint32_t, std::pair<uint64_t, uint64_t>> by_stack(
      const std::map<uint64_t, EventRow>& blocks) {
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> sums;
    for (const auto& [address, block] : blocks) {
      sums[block.stack].first += block.size_bytes;
      sums[block.stack].second += 1;
    }
    return sums;
  }
};

/// Up to 120 events on few addresses, stacks and devices, so that every odd case happens often.
inline std::vector<EventRow> random_rows(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<EventRow> rows(1 + random() % 120);
  uint64_t time = 1000;
  const uint64_t addresses = 1 + random() % 40;
  for (EventRow& row : rows) {
    row.time_ns = time += random() % 5;
    row.device = random() % 8 == 0 ? 2 : 0;
    row.thread = static_cast<uint32_t>(random() % 3);
    const uint64_t kind = random() % 20;
    row.address = kind == 19 ? 0 : 0x1000 + 64 * (random() % addresses);
    row.action = kind < 11   ? Action::kAlloc
                 : kind < 17 ? Action::kFreeCompleted
                 : kind < 19 ? Action::kFreeRequested
                             : Action::kOom;
    if (!is_free(row.action)) {
      row.size_bytes = random() % 10 == 0 ? 0 : random() % 1000;
      row.stack = static_cast<uint32_t>(random() % 7);
    }
  }
  return rows;
}

}  // namespace gpumemprof
