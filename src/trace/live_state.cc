#include "trace/live_state.h"

#include <algorithm>

#include "trace/holder_lines.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

struct FreeCaller : LiveObserver {
  LiveState::OnFree on_free_ = nullptr;
  void* context_ = nullptr;
  const EventBatch* batch_ = nullptr;

  void on_batch(const EventBatch& batch, size_t) { batch_ = &batch; }
  void on_free(size_t index, uint16_t device, const DeviceState&, const LiveBlock& block) {
    if (on_free_) on_free_(context_, device, block, batch_->time_ns[index]);
  }
};

}  // namespace

DeviceState& LiveState::device(uint16_t index) {
  if (index >= devices_.size()) devices_.resize(size_t{index} + 1);
  return devices_[index];
}

void LiveState::apply(const EventBatch& batch, OnFree on_free, void* context) {
  FreeCaller caller;
  caller.on_free_ = on_free;
  caller.context_ = context;
  apply_observed(batch, caller);
}

void LiveState::adopt(uint16_t index, uint64_t address, const LiveBlock& block) {
  DeviceState& device = this->device(index);
  if (device.blocks.put(address, block).is_new) hold_before(device, block);
}

void LiveState::adopt_numbered(uint16_t index, uint32_t number, const LiveBlock& block) {
  DeviceState& device = this->device(index);
  if (number >= device.numbered.size()) {
    device.numbered.resize(size_t{number} + 1, LiveBlock{0, LiveBlock::kGone, 0, 0});
  }
  if (device.numbered[number].time_ns != LiveBlock::kGone) return;
  device.numbered[number] = block;
  hold_before(device, block);
}

void LiveState::hold_before(DeviceState& device, const LiveBlock& block) {
  Site& site = touch(device, block.stack);
  site.live_bytes += block.size_bytes;
  ++site.live_count;
  device.live_bytes += block.size_bytes;
  ++device.live_count;
  device.peak_bytes = device.live_bytes;  // nothing has been freed yet
  device.peak_count = device.live_count;
  ++device.peak_epoch;
}

size_t LiveState::live_count() const {
  size_t count = 0;
  for (const DeviceState& device : devices_) count += device.live_count;
  return count;
}

std::vector<Holder> LiveState::holders_at_peak(uint16_t index) const {
  std::vector<Holder> holders;
  if (index >= devices_.size()) return holders;
  const DeviceState& device = devices_[index];
  for (const auto& [stack, site] : device.sites) {
    const bool touched_since = site.peak_epoch == device.peak_epoch;
    const uint64_t bytes = touched_since ? site.peak_bytes : site.live_bytes;
    const uint64_t count = touched_since ? site.peak_count : site.live_count;
    if (count != 0) holders.push_back({stack, bytes, count});
  }
  std::ranges::sort(holders, comes_first);
  return holders;
}

std::vector<Holder> LiveState::holders_now(uint16_t index) const {
  std::vector<Holder> holders;
  if (index >= devices_.size()) return holders;
  for (const auto& [stack, site] : devices_[index].sites) {
    if (site.live_count != 0) holders.push_back({stack, site.live_bytes, site.live_count});
  }
  std::ranges::sort(holders, comes_first);
  return holders;
}

Status LiveState::absorb(const LiveState& part, const IdMap& map) {
  const auto translate = [](std::span<const uint32_t> ids, uint32_t id, uint32_t unknown) {
    return id < ids.size() ? ids[id] : unknown;
  };
  for (size_t i = 0; i < part.devices_.size(); ++i) {
    const DeviceState& from = part.devices_[i];
    if (from.sites.empty() && from.blocks.empty() &&
        std::all_of(std::begin(from.actions), std::end(from.actions),
                    [](uint64_t n) { return n == 0; })) {
      continue;
    }
    if (i >= map.devices.size())
      return fail(ErrorCode::kBadInput, "a checkpoint names an unknown device");
    DeviceState& to = device(map.devices[i]);
    if (!to.sites.empty() || !to.blocks.empty()) {
      return fail(ErrorCode::kBadInput, "two checkpoints describe the same device");
    }
    static_cast<DeviceFigures&>(to) = from;
    for (const auto& [stack, site] : from.sites) {
      Site& sum = to.sites[translate(map.stacks, stack, 0)];
      const bool touched_since = site.peak_epoch == from.peak_epoch;
      sum.live_bytes += site.live_bytes;
      sum.live_count += site.live_count;
      sum.total_bytes += site.total_bytes;
      sum.total_count += site.total_count;
      sum.peak_bytes += touched_since ? site.peak_bytes : site.live_bytes;
      sum.peak_count += touched_since ? site.peak_count : site.live_count;
      sum.peak_epoch = from.peak_epoch;
    }
    to.blocks.reserve(from.blocks.size());
    from.blocks.each([&](uint64_t address, LiveBlock block) {
      block.stack = translate(map.stacks, block.stack, 0);
      block.thread = translate(map.threads, block.thread, UINT32_MAX);
      to.blocks.put(address, block);
    });
  }
  event_count_ += part.event_count_;
  return {};
}

}  // namespace gpumemprof
