// What each step allocated and what of it is live, as the framework numbers them (TensorFlow: one
// run of a function; 0 for all that is eager).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

namespace gpumemprof {

/// One step on one device. `step` is the framework's number; it may come again.
struct StepSum {
  int64_t step = 0;
  uint64_t first_event = 0;  ///< number of its first allocation
  uint64_t alloc_count = 0, alloc_bytes = 0;
  uint64_t free_count = 0, freed_bytes = 0;  ///< of its blocks, by whomever
  /// Still live.
  int64_t net_bytes() const { return static_cast<int64_t>(alloc_bytes - freed_bytes); }
};

/// Memory O(distinct steps), of which kMost are kept apart: later ones are summed in `others`.
class StepSums {
 public:
  static constexpr size_t kMost = 1u << 20;

  void add_alloc(int64_t step, uint64_t event, uint64_t bytes);
  void add_free(int64_t step, uint64_t event, uint64_t bytes);

  bool empty() const { return steps_.empty(); }
  size_t count() const { return steps_.size(); }
  /// What was allocated for none. With all steps and `others` it adds up to the device's own
  /// sums.
  const StepSum& without_step() const { return without_; }
  const StepSum& others() const { return others_; }
  /// Those that left the most behind first; of equals, the earlier.
  std::vector<StepSum> by_net_bytes() const;

 private:
  StepSum& at(int64_t step, uint64_t event);

  absl::flat_hash_map<int64_t, StepSum> steps_;
  StepSum without_, others_;
};

}  // namespace gpumemprof
