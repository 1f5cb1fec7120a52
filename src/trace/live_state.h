// The exact state of memory at one moment of a stream of events, and the exact peak so far.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "base/error.h"
#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// A block that is live.
struct LiveBlock {
  uint64_t size_bytes;
  uint64_t time_ns;
  uint32_t stack;
  uint32_t thread;
};

/// What one stack did on one device.
struct Site {
  uint64_t live_bytes = 0;
  uint64_t live_count = 0;
  uint64_t total_bytes = 0;  ///< allocated over the whole stream
  uint64_t total_count = 0;
  uint64_t peak_bytes = 0;   ///< what it held at the device's peak; read it through holders_at_peak()
  uint64_t peak_count = 0;
  uint64_t peak_epoch = 0;
};

struct DeviceState {
  uint64_t live_bytes = 0;
  uint64_t live_count = 0;
  uint64_t peak_bytes = 0;
  uint64_t peak_count = 0;
  uint64_t peak_event = 0;    ///< number of the first event at which live_bytes was highest
  uint64_t peak_time_ns = 0;
  uint64_t peak_epoch = 1;
  uint64_t actions[kActionCount] = {};
  uint64_t total_bytes = 0;
  uint64_t unmatched_frees = 0;     ///< frees of blocks that were never seen allocated
  uint64_t repeated_allocs = 0;     ///< allocations at an address that was still live: a free was missed
  bool has_totals = false;          ///< the framework's own running totals were seen
  uint64_t framework_allocated_bytes = 0;
  uint64_t framework_reserved_bytes = 0;
  uint64_t peak_reserved_bytes = 0;
  uint64_t peak_reserved_event = 0;
  uint64_t peak_reserved_time_ns = 0;
  std::vector<Site> sites;          ///< indexed by stack id; shorter than the table where none allocated
};

/// A holder at the peak: one stack.
struct Holder {
  uint32_t stack;
  uint64_t bytes;
  uint64_t count;
};

/// One streaming pass, O(1) an event; memory O(live blocks + distinct stacks).
///
/// What every stack held at the peak is known without a second pass: a stack's peak figures are only
/// brought up to date when the stack is touched next. `peak_epoch` of the device counts peaks; a stack
/// whose own epoch is older has not been touched since the last peak, so what it holds now is what it
/// held then.
///
/// Not thread-safe. apply() must see events in time order.
class LiveState {
 public:
  /// Called for every free that matches: the device, the block, and when it was freed.
  using OnFree = void (*)(void* context, uint16_t device, const LiveBlock& block, uint64_t time_ns);

  void apply(const EventBatch& batch, OnFree on_free = nullptr, void* context = nullptr);

  uint64_t event_count() const { return event_count_; }
  size_t live_count() const { return live_.size(); }
  const std::vector<DeviceState>& devices() const { return devices_; }

  /// Stacks that held something at the device's peak, largest first.
  std::vector<Holder> holders_at_peak(uint16_t device) const;
  /// Stacks that hold something now, largest first.
  std::vector<Holder> holders_now(uint16_t device) const;

  /// A checkpoint's body; ids in it are those of the tables the events were read with.
  void serialise(std::string* out) const;
  /// Errors: kBadInput with an offset in `bytes` where it is cut short or holds an impossible count.
  static Result<LiveState> parse(std::string_view bytes);

 private:
  struct Key {
    uint64_t address;
    uint16_t device;
    bool operator==(const Key&) const = default;
    template <class H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.address ^ (uint64_t{k.device} << 48));
    }
  };
  DeviceState& device(uint16_t index);
  Site& touch(DeviceState& device, uint32_t stack);

  uint64_t event_count_ = 0;
  absl::flat_hash_map<Key, LiveBlock> live_;
  std::vector<DeviceState> devices_;
};

}  // namespace gpumemprof
