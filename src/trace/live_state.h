// The exact state of memory at one moment of a stream of events, and the exact peak so far.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/large_pages.h"
#include "trace/event.h"
#include "trace/live_blocks.h"
#include "trace/site_table.h"
#include "trace/tables.h"

namespace gpumemprof {

/// The counters of one device.
struct DeviceFigures {
  uint64_t live_bytes = 0;
  uint64_t live_count = 0;
  uint64_t peak_bytes = 0;
  uint64_t peak_count = 0;
  uint64_t peak_event = 0;  ///< number of the first event at which live_bytes was highest
  uint64_t peak_time_ns = 0;
  uint64_t peak_epoch = 1;  ///< how often a new peak was reached, plus one
  uint64_t actions[kActionCount] = {};
  uint64_t total_bytes = 0;
  uint64_t unmatched_frees = 0;  ///< frees of blocks that were never seen allocated
  uint64_t repeated_allocs =
      0;                    ///< allocations at an address that was still live: a free was missed
  uint64_t has_totals = 0;  ///< 1: the framework's own running totals were seen
  uint64_t framework_allocated_bytes = 0;
  uint64_t framework_reserved_bytes = 0;
  uint64_t peak_reserved_bytes = 0;
  uint64_t peak_reserved_event = 0;
  uint64_t peak_reserved_time_ns = 0;
};

struct DeviceState : DeviceFigures {
  SiteTable sites;
  LiveBlocks blocks;  ///< what is live, by address
  /// Or by number, if the source numbers its blocks: one access and no search.
  std::vector<LiveBlock, LargePages<LiveBlock>> numbered;
};

/// A holder at the peak: one stack.
struct Holder {
  uint32_t stack;
  uint64_t bytes;
  uint64_t count;
};

/// How the ids of a part (one file's checkpoint) map to those of the whole.
struct IdMap {
  std::span<const uint32_t> stacks;   ///< an id outside becomes 0, the unknown stack
  std::span<const uint32_t> threads;  ///< an id outside becomes UINT32_MAX
  std::span<const uint16_t> devices;  ///< an id outside is an error
};

/// One streaming pass, O(1) per event; memory O(live blocks + distinct stacks).
///
/// What every stack held at the peak is known without a second pass: a stack's peak figures are
/// updated only when the stack is next touched. `peak_epoch` of the device counts peaks; a stack
/// with an older epoch has not been touched since the last peak, so what it holds now is what it
/// held then.
///
/// Not thread-safe. apply() must see events in time order. Sums wrap if a damaged file claims more
/// than 2^64 bytes.
class LiveState {
 public:
  /// Called for every free that matches: the device, the block, and when it was freed.
  using OnFree = void (*)(void* context, uint16_t device, const LiveBlock& block, uint64_t time_ns);

  void apply(const EventBatch& batch, OnFree on_free = nullptr, void* context = nullptr);

  /// The same with an observer that the compiler can inline; trace/live_state_apply.h. `numbers`:
  /// becomes, by event, the number in LiveBlocks of the block that it begins, ends or asks to end,
  /// kNoNumber for other events; empty if the batch has numbers of its own.
  template <class Observer>
  void apply_observed(const EventBatch& batch, Observer& observer,
                      std::vector<uint32_t>* numbers = nullptr);

  /// A block that was live before the first event: it holds memory without an event. Ignored if the
  /// address is taken. Only before the first apply().
  void adopt(uint16_t device, uint64_t address, const LiveBlock& block);
  /// The same if batches number their blocks (EventBatch::block).
  void adopt_numbered(uint16_t device, uint32_t number, const LiveBlock& block);

  uint64_t event_count() const { return event_count_; }
  size_t live_count() const;
  /// Indexed like Tables::devices; shorter if the last devices had no event.
  const std::vector<DeviceState>& devices() const { return devices_; }

  /// Stacks that held something at the device's peak, largest first (of equals, the lower id).
  std::vector<Holder> holders_at_peak(uint16_t device) const;
  /// Stacks that hold something now, largest first (of equals, the lower id).
  std::vector<Holder> holders_now(uint16_t device) const;

  /// A checkpoint's body; its ids are those of the tables that the events were read with.
  void serialise(std::string* out) const;
  /// Errors: kBadInput with an offset in `bytes` if it is truncated or has an impossible count.
  static Result<LiveState> parse(std::string_view bytes);

  /// Adds the state of another stream, such as another process's checkpoint, with its ids mapped.
  /// Stacks that map to the same stack (the unknown one) are added up. Event numbers of its peaks
  /// stay those of that stream. Errors: kBadInput for a device that is not in the map, or already
  /// present.
  Status absorb(const LiveState& part, const IdMap& map);

 private:
  DeviceState& device(uint16_t index);
  static Site& touch(DeviceState& device, uint32_t stack);
  static void release(DeviceState& device, const LiveBlock& block);
  static void hold_before(DeviceState& device, const LiveBlock& block);
  template <class Blocks, class Observer>
  void apply_to(const EventBatch& batch, Observer& observer, Blocks blocks);

  uint64_t event_count_ = 0;
  std::vector<DeviceState> devices_;
};

}  // namespace gpumemprof
