// What every stack held over the life of its process, in a fixed number of windows: what the search
// for leaks looks at. Streaming; memory O(stacks), never O(events).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "trace/event.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

/// One window in which a stack took or gave. In those left out it kept `last_bytes`.
struct HeldCell {
  uint32_t window = 0;
  uint32_t allocs = 0;
  uint64_t floor_bytes = 0;  ///< the least that was live within the window
  uint64_t last_bytes = 0;   ///< what was live at its end
  uint64_t alloc_bytes = 0;  ///< of `allocs`
};

/// One stack on one device; or, where JAX's own threads allocate without stacks, one size.
struct SiteHistory {
  uint32_t stack = 0;
  uint16_t device = 0;
  uint64_t told_by_bytes = 0;  ///< the size of each of its blocks; 0 where the stack tells them
  uint64_t alloc_count = 0, alloc_bytes = 0;
  uint64_t live_bytes = 0, live_count = 0;  ///< right after the process's last allocation
  uint64_t median_live_bytes = 0;           ///< size of one of these blocks that stay; 0 where none is left
  uint64_t first_alloc = 0, last_alloc = 0;  ///< which of the process's allocations; from 1
  uint64_t largest_bytes = 0;                ///< of one block
  uint64_t larger_count = 0, larger_bytes = 0;  ///< blocks that were larger than all before
  uint64_t largest_count = 0;  ///< blocks as large as the largest
  uint64_t last_larger = 0;    ///< as `last_alloc`, of the last block that was larger than all before
  uint64_t other_block_bytes = 0;  ///< of the last block that was not
  uint64_t turns = 0;  ///< in a DataLoader's worker, how often its line had a turn; 0: elsewhere
  std::vector<HeldCell> cells;              ///< windows ascending
};

/// A block that was live right after its process's last allocation: what a program frees while it
/// takes itself down tells nothing.
struct KeptBlock {
  uint64_t size_bytes = 0;
  uint64_t time_ns = 0;  ///< LiveBlock::kUnknownTime where it is older than the events
  uint32_t stack = 0;
  uint16_t device = 0;
  uint64_t told_by_bytes = 0;  ///< as its SiteHistory's
};

/// The same of a SiteHistory and of its KeptBlocks.
using SiteKey = std::tuple<uint16_t, uint32_t, uint64_t>;
SiteKey site_key_of(const auto& of) { return {of.device, of.stack, of.told_by_bytes}; }

struct ProcessHistory {
  uint32_t process = 0;            ///< index in Tables::processes
  uint64_t allocs = 0;             ///< counted over all its devices
  uint64_t allocs_a_window = 1;    ///< every window but the last has as many
  std::vector<uint32_t> steps;     ///< by window: steps of the program that ended in it (marks)
  std::vector<uint64_t> end_ns;    ///< by window: time of its last allocation
  /// By window: when the last of its steps had ended, right after an allocation; 0: none ended in it.
  std::vector<uint64_t> step_ns;
  std::vector<SiteHistory> sites;  ///< in the order in which they first allocated
  std::vector<KeptBlock> kept;     ///< as LiveState has them, in no order
  uint64_t state_names = 0;  ///< names that storages of optimizers' state were given, each once
  uint32_t windows() const { return static_cast<uint32_t>(end_ns.size()); }
};

/// One part in so many of a run, its first, may be its set-up: what rises then is no growth.
inline constexpr uint64_t kSetUpPart = 5;

/// Of these blocks on a device, those that were made at `time_ns` or later, by stack.
std::vector<Holder> kept_since(const ProcessHistory& history, uint16_t device, uint64_t time_ns);

/// Sees every event beside a LiveState. Not thread-safe.
class LeakGatherer {
 public:
  /// Windows are merged in pairs when there are as many.
  static constexpr uint32_t kMostWindows = 512;
  /// So that a process with very many stacks has coarser windows instead of taking all memory.
  static constexpr size_t kMostCells = size_t{1} << 22;
  /// Of a device; blocks of further sizes without a stack are one site.
  static constexpr size_t kMostSizes = 1024;

  LeakGatherer();
  ~LeakGatherer();
  /// `state` is as it is before the batch.
  void begin_batch(const EventBatch& batch, const Tables& tables, const LiveState& state);
  /// After the state has taken it. `i`: index of the event in the batch.
  void on_alloc(size_t i, uint16_t device);
  void on_free(uint16_t device, const LiveBlock& block);
  /// A few events before one of the two: with many stacks this one has left the caches.
  void prefetch(uint16_t device, uint32_t stack) const;
  /// After the last event of the batch: marks may follow it.
  void end_batch();
  /// `state` is as it is after the last event; last_frees(device): what was freed since the last
  /// allocation of its process. One history a process that allocated.
  std::vector<ProcessHistory> finish(
      const LiveState& state,
      const std::function<std::span<const LiveBlock>(uint16_t device)>& last_frees);

 private:
  struct Open;     // a site whose last window is not over
  struct Running;  // a process
  struct OnDevice;

  Running* running_of(uint16_t device);
  Open& site_of(Running& process, uint16_t device, uint32_t stack, uint64_t size_bytes);
  Open& new_site(Running& process, uint16_t device, uint32_t stack);
  void touch(Running& process, Open& site);
  void next_window(Running& process);
  void take_marks(size_t until_event);
  void resync_where_needed(const LiveState& state);
  void resync(uint16_t device, const DeviceState& state);

  const EventBatch* batch_ = nullptr;
  size_t next_mark_ = 0;
  const Tables* tables_ = nullptr;
  std::vector<OnDevice> devices_;
  std::map<uint32_t, std::unique_ptr<Running>> processes_;  // by Device::process, which may name none
};

}  // namespace gpumemprof
