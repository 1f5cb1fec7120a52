// The interface for other observers of a followed recording's events.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

struct DriverMemories;  // analysis/driver/driver_memories.h: passed through unread

/// What one kind holds now.
struct FollowedCategory {
  std::string name;
  uint64_t bytes = 0, count = 0;
};

/// The kind of most of a stack's bytes.
struct KindOfStack {
  uint32_t kind = 0;  ///< in FollowedCategories::all
  uint64_t bytes = 0;
};

/// The kinds add up to what is live; otherwise `absent_because` has the reason.
struct FollowedCategories {
  std::vector<FollowedCategory> all;  ///< largest first
  std::string absent_because;
  absl::flat_hash_map<uint32_t, KindOfStack> by_stack;
};

/// Whether live memory grows for good, by all events of the recording.
struct FollowedGrowth {
  std::optional<double> bytes_per_second;  ///< 0: it does not grow
  std::string why_none;                    ///< where that cannot be told, or not yet
};

/// What one stack holds now of one kind on one stream.
struct FollowedHeld {
  uint32_t stack = 0;             ///< id in the tables
  std::string_view category;      ///< of the program's constants; empty where none is told
  std::optional<int64_t> stream;  ///< absent where it is not known
  uint64_t bytes = 0, count = 0;
};

/// Sealed events are passed once. Unsealed ones are passed again at each look, to a copy that is
/// then dropped.
class FollowObserver {
 public:
  virtual ~FollowObserver() = default;
  virtual std::unique_ptr<FollowObserver> copy() const = 0;
  /// One for the same recording, which is read anew with other ids: it goes on with growth alone.
  virtual std::unique_ptr<FollowObserver> anew() const = 0;
  /// What was live before the file's first event, if anything. Called once, before all others.
  virtual void begin(const LiveState& before) = 0;
  /// Applies the batch to `state` and observes its events; a batch may consist of marks only.
  virtual void apply(const EventBatch& batch, LiveState* state) = 0;
  /// Call once, at the end of a copy's life.
  virtual FollowedCategories live_now(uint16_t device, const LiveState& state) = 0;
  /// All that is live, largest first; adds up to the device's live bytes. Call before live_now().
  virtual std::vector<FollowedHeld> held_now(uint16_t device, const LiveState& state) = 0;
  /// `now_ns`: of the events' clock. Call likewise.
  virtual FollowedGrowth growth_now(uint16_t device, const LiveState& state, int64_t now_ns) = 0;
  /// What the driver has handed out by now; null if it was not recorded. Call likewise.
  virtual std::shared_ptr<const DriverMemories> driver_now() = 0;
};

/// The tables grow, and outlive the observer.
using FollowObserverFactory = std::function<std::unique_ptr<FollowObserver>(const Tables&)>;

}  // namespace gpumemprof
