// What else may look at every event of a recording that is followed.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trace/event.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

struct DriverMemories;  // analysis/driver/driver_memories.h: handed through, and not looked into

/// What is held now of one kind.
struct FollowedCategory {
  std::string name;
  uint64_t bytes = 0, count = 0;
};

/// Of one stack, the kind of most of what it holds.
struct KindOfStack {
  uint32_t kind = 0;  ///< in FollowedCategories::all
  uint64_t bytes = 0;
};

/// The kinds add up to what is live, or `absent_because` says why there are none.
struct FollowedCategories {
  std::vector<FollowedCategory> all;  ///< largest first
  std::string absent_because;
  absl::flat_hash_map<uint32_t, KindOfStack> by_stack;
};

/// Sealed events are told once. Those that are not sealed yet are told anew with each look, to a
/// copy that is gone afterwards.
class FollowObserver {
 public:
  virtual ~FollowObserver() = default;
  virtual std::unique_ptr<FollowObserver> copy() const = 0;
  /// What was live before the first event of the file. Once, before all others, where there is
  /// such.
  virtual void begin(const LiveState& before) = 0;
  /// Applies the batch to `state` and sees its events; a batch may be of marks alone.
  virtual void apply(const EventBatch& batch, LiveState* state) = 0;
  /// Call once, at the end of a copy's life.
  virtual FollowedCategories live_now(uint16_t device, const LiveState& state) = 0;
  /// What the driver has handed out by now; null where it was not recorded. Likewise.
  virtual std::shared_ptr<const DriverMemories> driver_now() = 0;
};

/// The tables grow, and outlive the observer.
using FollowObserverFactory = std::function<std::unique_ptr<FollowObserver>(const Tables&)>;

}  // namespace gpumemprof
