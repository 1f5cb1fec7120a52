// The hot loop of LiveState, as a template so that an analysis can observe every event without a
// call.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// The calls of apply_observed(). Derive from it and hide the ones you need; nothing is virtual.
struct LiveObserver {
  /// Before the first event of a batch: its events name no device beyond `device_count`.
  void on_batch(const EventBatch&, size_t /*device_count*/) {}
  /// A few events before one of the two below, if there are many stacks: the stack that will be
  /// needed.
  void on_soon(uint16_t /*device*/, uint32_t /*stack*/) {}
  /// After the state has changed.
  void on_alloc(size_t /*index*/, uint16_t /*device*/, const DeviceState&) {}
  void on_free(size_t /*index*/, uint16_t /*device*/, const DeviceState&, const LiveBlock&) {}
  /// Frees that match nothing, out of memory, segments.
  void on_other(size_t /*index*/, uint16_t /*device*/, const DeviceState&) {}
};

/// The sizes of a batch. A recorded free does not have its size, so it is that of the block that it
/// ends.
struct SizesWithFrees : LiveObserver {
  void on_batch(const EventBatch& batch, size_t) { values = batch.size_bytes; }
  void on_free(size_t index, uint16_t, const DeviceState&, const LiveBlock& block) {
    values[index] = block.size_bytes;
  }
  std::vector<uint64_t> values;  ///< by event of the batch
};

inline Site& LiveState::touch(DeviceState& device, uint32_t stack) {
  Site& site = device.sites[stack];
  if (site.peak_epoch != device.peak_epoch) {
    site.peak_bytes = site.live_bytes;
    site.peak_count = site.live_count;
    site.peak_epoch = device.peak_epoch;
  }
  return site;
}

inline void LiveState::release(DeviceState& device, const LiveBlock& block) {
  Site& site = touch(device, block.stack);
  site.live_bytes -= block.size_bytes;
  --site.live_count;
  device.live_bytes -= block.size_bytes;
  --device.live_count;
}

/// The live blocks of devices whose batches do not number them.
struct BlocksByAddress {
  uint32_t* numbers = nullptr;  // by event; null: not asked for

  static void begin(DeviceState&, const EventBatch&) {}
  static void prefetch(const DeviceState& device, const EventBatch& batch, size_t i) {
    device.blocks.prefetch(batch.address[i]);
  }
  static void prefetch_block(const DeviceState& device, const EventBatch& batch, size_t i) {
    constexpr size_t kFewBlocks = 4096;
    if (device.blocks.size() > kFewBlocks) device.blocks.prefetch_block(batch.address[i]);
  }
  static const LiveBlock* find(const DeviceState& device, const EventBatch& batch, size_t i) {
    return device.blocks.find(batch.address[i]);
  }
  /// The block, and whether it was inserted; otherwise another one is live there.
  std::pair<LiveBlock*, bool> put(DeviceState& device, const EventBatch& batch, size_t i,
                                  const LiveBlock& block) const {
    const auto [number, added] = device.blocks.put(batch.address[i], block);
    if (numbers) numbers[i] = number;
    return {&device.blocks.numbered(number), added};
  }
  std::optional<LiveBlock> take(DeviceState& device, const EventBatch& batch, size_t i) const {
    const uint32_t number = device.blocks.take(batch.address[i]);
    if (numbers) numbers[i] = number;
    if (number == LiveBlocks::kNoNumber) return std::nullopt;
    return device.blocks.numbered(number);
  }
  /// Of an event that neither begins nor ends a block.
  void pass(const DeviceState& device, const EventBatch& batch, size_t i) const {
    if (numbers == nullptr) return;
    numbers[i] = is_free(batch.action[i]) ? device.blocks.number_at(batch.address[i])
                                          : LiveBlocks::kNoNumber;
  }
};

/// The live blocks of devices whose batches number them.
struct BlocksByNumber {
  static void begin(DeviceState& device, const EventBatch& batch) {
    if (device.numbered.size() >= batch.block_count) return;
    device.numbered.resize(batch.block_count, LiveBlock{0, LiveBlock::kGone, 0, 0});
  }
  static void prefetch(const DeviceState& device, const EventBatch& batch, size_t i) {
    if (batch.block[i] < device.numbered.size())
      prefetch_line(&device.numbered[batch.block[i]]);
  }
  static const LiveBlock* find(const DeviceState& device, const EventBatch& batch, size_t i) {
    if (batch.block[i] >= device.numbered.size()) return nullptr;
    const LiveBlock& known = device.numbered[batch.block[i]];
    return known.time_ns == LiveBlock::kGone ? nullptr : &known;
  }
  static std::pair<LiveBlock*, bool> put(DeviceState& device, const EventBatch& batch, size_t i,
                                         const LiveBlock& block) {
    LiveBlock& known = device.numbered[batch.block[i]];
    const bool is_free = known.time_ns == LiveBlock::kGone;
    if (is_free) known = block;
    return {&known, is_free};
  }
  static std::optional<LiveBlock> take(DeviceState& device, const EventBatch& batch, size_t i) {
    LiveBlock& known = device.numbered[batch.block[i]];
    if (known.time_ns == LiveBlock::kGone) return std::nullopt;
    const LiveBlock block = known;
    known.time_ns = LiveBlock::kGone;
    return block;
  }
  static void prefetch_block(const DeviceState&, const EventBatch&, size_t) {}
  static void pass(const DeviceState&, const EventBatch&, size_t) {}
};

/// With very many live blocks or stacks almost every look-up misses the caches, so it is prefetched
/// some events early, and then the block's stack.
template <class Blocks, class Observer>
void look_ahead(const std::vector<DeviceState>& devices, const EventBatch& batch, size_t index,
                    Observer& observer) {
  constexpr size_t kFar = 24, kNear = 10, kFewSites = 1024;
  const size_t far = index + kFar, near = index + kNear;
  if (far >= batch.size()) return;
  Blocks::prefetch(devices[batch.device[far]], batch, far);
  const DeviceState& device = devices[batch.device[near]];
  if (device.sites.size() < kFewSites) {
    if (is_free(batch.action[near])) Blocks::prefetch_block(device, batch, near);
    return;
  }
  uint32_t stack = batch.stack[near];
  if (is_free(batch.action[near])) {
    const LiveBlock* block = Blocks::find(device, batch, near);
    if (block == nullptr) return;
    stack = block->stack;
  }
  device.sites.prefetch(stack);
  observer.on_soon(batch.device[near], stack);
}

/// In a recording of a CUDA allocator a block ends where its free is requested, as the framework
/// counts. Only frees that waited for a stream have a second half, which then ends nothing.
inline bool is_second_half(const DeviceState& device, Action action, const EventBatch& batch) {
  return action == Action::kFreeCompleted && !batch.frees_in_two_steps &&
         device.actions[static_cast<size_t>(Action::kFreeRequested)] != 0;
}

template <class Observer>
void LiveState::apply_observed(const EventBatch& batch, Observer& observer,
                               std::vector<uint32_t>* numbers) {
  if (numbers) numbers->resize(batch.block.empty() ? batch.size() : 0);
  if (batch.size() == 0) return;
  if (batch.block.empty()) {
    apply_to(batch, observer, BlocksByAddress{numbers ? numbers->data() : nullptr});
  } else {
    apply_to(batch, observer, BlocksByNumber{});
  }
}

template <class Blocks, class Observer>
void LiveState::apply_to(const EventBatch& batch, Observer& observer, Blocks blocks) {
  const size_t count = batch.size();
  device(*std::max_element(batch.device.begin(), batch.device.end()));  // none moves from here on
  for (DeviceState& device : devices_) Blocks::begin(device, batch);
  observer.on_batch(batch, devices_.size());
  for (size_t i = 0; i < count; ++i) {
    look_ahead<Blocks>(devices_, batch, i, observer);
    const uint16_t index = batch.device[i];
    DeviceState& device = devices_[index];
    const Action action = batch.action[i];
    const size_t number = static_cast<size_t>(action);
    ++device.actions[number < kActionCount ? number : 0];
    if (action == Action::kAlloc) {
      const LiveBlock block{batch.size_bytes[i], batch.time_ns[i], batch.stack[i], batch.thread[i]};
      const auto [known, added] = blocks.put(device, batch, i, block);
      if (!added) {
        ++device.repeated_allocs;
        release(device, *known);
        *known = block;
      }
      Site& site = touch(device, block.stack);
      site.live_bytes += block.size_bytes;
      ++site.live_count;
      site.total_bytes += block.size_bytes;
      ++site.total_count;
      device.total_bytes += block.size_bytes;
      device.live_bytes += block.size_bytes;
      ++device.live_count;
      if (device.live_bytes > device.peak_bytes) {
        device.peak_bytes = device.live_bytes;
        device.peak_count = device.live_count;
        device.peak_event = batch.first_event + i;
        device.peak_time_ns = block.time_ns;
        ++device.peak_epoch;
      }
      observer.on_alloc(i, index, device);
    } else if (action == Action::kFreeCompleted ||
               (action == Action::kFreeRequested && !batch.frees_in_two_steps)) {
      const std::optional<LiveBlock> block = blocks.take(device, batch, i);
      if (!block) {
        if (!is_second_half(device, action, batch)) ++device.unmatched_frees;
        observer.on_other(i, index, device);
        continue;
      }
      release(device, *block);
      observer.on_free(i, index, device, *block);
    } else {
      blocks.pass(device, batch, i);
      observer.on_other(i, index, device);
    }
  }
  event_count_ += count;
  for (const DeviceTotals& totals : batch.totals) {
    if (totals.event >= count) continue;
    DeviceState& device = devices_[batch.device[totals.event]];
    device.has_totals = 1;
    device.framework_allocated_bytes = totals.allocated_bytes;
    device.framework_reserved_bytes = totals.reserved_bytes;
    if (totals.reserved_bytes > device.peak_reserved_bytes) {
      device.peak_reserved_bytes = totals.reserved_bytes;
      device.peak_reserved_event = batch.first_event + totals.event;
      device.peak_reserved_time_ns = batch.time_ns[totals.event];
    }
  }
}

}  // namespace gpumemprof
