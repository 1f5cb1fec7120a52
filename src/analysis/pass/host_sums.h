// The host's memory that several allocators of a framework share: TensorFlow's on a CPU are `cpu`,
// for small blocks, and `mklcpu`, for large ones. Their peaks are at different times, so neither
// one is what the program needs, nor is the sum of the two.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Turns batches into ones in which the device is the process and what concerns other memory is no
/// event: a LiveState that reads them has a device a process, whose peak is that of the sum. Events
/// keep their numbers.
class HostSums {
 public:
  /// Null where neither events nor marks of the batch concern such memory. Valid until the next
  /// call.
  const EventBatch* take(const EventBatch& batch, const Tables& tables);
  /// By process, the allocators whose events were seen, in the order of Tables.
  const std::map<uint32_t, std::vector<uint16_t>>& parts() const { return parts_; }

 private:
  uint32_t process_of(uint16_t device, const Tables& tables);

  EventBatch batch_;
  std::vector<uint32_t> processes_;  // by device
  std::map<uint32_t, std::vector<uint16_t>> parts_;
};

}  // namespace gpumemprof
