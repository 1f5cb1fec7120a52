// The marks that still apply at one moment: to live blocks, modules, open phases, and the last
// step.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "trace/event.h"

namespace gpumemprof {

/// Of one process. Memory O(live blocks + roles + modules). Not thread-safe.
class StandingMarks {
 public:
  /// Add batches in order.
  void apply(const EventBatch& batch);
  /// In the order in which they were made.
  std::vector<Mark> now() const;

 private:
  struct OfBlock {
    Mark role, saved;
    bool is_saved = false, has_role = false;
    uint64_t role_order = 0, saved_order = 0;
  };
  void end_life(uint64_t address);
  struct Said {
    uint64_t order;
    Mark mark;
  };
  void take(const Mark& mark);

  absl::flat_hash_map<uint64_t, OfBlock> blocks_;  // by address
  absl::flat_hash_map<uint64_t, Said> phases_;     // by number
  std::vector<Said> modules_;                      // all: an address may be used again
  Said step_{}, hold_{};
  uint64_t count_ = 0;
};

}  // namespace gpumemprof
