// The trace once more with a change applied to it: how high would memory have gone?
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// A change to the lifetimes of the blocks of some stacks.
struct TraceChange {
  enum class Rule : uint8_t {
    kGone,           ///< removed, except `stays_bytes` of them at a time
    kGoneAfterStep,  ///< freed at the end of the step that allocated it
    /// Models gradients freed after every step: they end with the step, and the next backward pass
    /// allocates them again.
    kMadeAnewEachStep,
    /// Models recomputation, one group at a time: each group keeps `stays_bytes`, the largest all
    /// of it.
    kOneGroupAtATime,
    kGoneWhileIdle,  ///< `idle` are freed as they become so
    kGoneAtCall,     ///< freed when one of `calls` allocates next, except those of `kept_events`
  };
  Rule rule = Rule::kGone;
  uint16_t device = 0;
  absl::flat_hash_map<uint32_t, uint32_t> group_of;  ///< stack -> group
  /// Of kGone: a group of which stays what was computed of a block of `sources`, through autograd's
  /// graph.
  static constexpr uint32_t kUnlessDerived = 1;
  absl::flat_hash_set<uint32_t> sources;  ///< stacks
  uint64_t stays_bytes = 0;
  std::vector<IdleGradient> idle;
  absl::flat_hash_set<uint32_t> calls;        ///< stacks
  absl::flat_hash_set<uint64_t> kept_events;  ///< of the device, that allocated what stays

  bool has_blocks() const { return !group_of.empty() || !idle.empty(); }
};

/// The peak of each change's device with that change alone, in the order of `changes`. Everything
/// else happens as it did. Reads `source` to its end; memory O(live blocks) a change.
Result<std::vector<uint64_t>> replay_changes(EventSource& source,
                                             const std::vector<TraceChange>& changes);

}  // namespace gpumemprof
