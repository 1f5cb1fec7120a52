// The trace once more with a change applied to it: how high would memory have gone?
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// A change of what the blocks of some stacks do.
struct TraceChange {
  enum class Rule : uint8_t {
    kGone,           ///< they are not there, but for `stays_bytes` of them at a time
    kGoneAfterStep,  ///< none outlives the step in which it was made
    /// As gradients that are dropped after each step: one that would have outlived it is gone, and
    /// the block of its size that its stack makes in the next backward pass stays in its place.
    kMadeAnewEachStep,
    /// As groups that are computed again, one at a time: of every group `stays_bytes` are there,
    /// and the whole of the largest.
    kOneGroupAtATime,
  };
  Rule rule = Rule::kGone;
  uint16_t device = 0;
  absl::flat_hash_map<uint32_t, uint32_t> group_of;  ///< stack -> group
  uint64_t stays_bytes = 0;
};

/// The peak of each change's device with that change alone, in the order of `changes`. Everything
/// else happens as it did. Reads `source` to its end; memory O(live blocks) a change.
Result<std::vector<uint64_t>> replay_changes(EventSource& source,
                                             const std::vector<TraceChange>& changes);

}  // namespace gpumemprof
