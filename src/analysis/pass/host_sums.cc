#include "analysis/pass/host_sums.h"

#include <algorithm>

namespace gpumemprof {
namespace {

constexpr uint32_t kUnseen = UINT32_MAX, kNoProcess = UINT32_MAX - 1;

/// Blocks alone: the regions that a pool is made of hold them.
bool is_shared(const Device& device) {
  return is_tensorflow(device) && is_host_memory(device) && device.layer != Layer::kDriver;
}

}  // namespace

uint32_t HostSums::process_of(uint16_t index, const Tables& tables) {
  if (processes_.size() <= index) processes_.resize(size_t{index} + 1, kUnseen);
  uint32_t& known = processes_[index];
  if (known != kUnseen || index >= tables.devices.size()) return known;
  const Device& device = tables.devices[index];
  known = is_shared(device) && device.process < UINT16_MAX ? device.process : kNoProcess;
  if (known == kNoProcess) return known;
  std::vector<uint16_t>& parts = parts_[known];
  parts.insert(std::lower_bound(parts.begin(), parts.end(), index), index);
  return known;
}

const EventBatch* HostSums::take(const EventBatch& batch, const Tables& tables) {
  const auto is_part = [&](uint16_t device) { return process_of(device, tables) < kNoProcess; };
  // Nearly always the device is that of the event before.
  bool has_part = false;
  uint16_t last = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (i != 0 && batch.device[i] == last) continue;
    last = batch.device[i];
    has_part |= is_part(last);
  }
  if (!has_part && (batch.marks.empty() || parts_.empty())) return nullptr;
  batch_ = batch;
  batch_.totals.clear();
  batch_.block.clear();  // each device has its own
  for (size_t i = 0; i < batch_.size(); ++i) {
    const bool is_of_sum = is_part(batch_.device[i]);
    if (!is_of_sum) batch_.action[i] = Action::kSnapshot;  // changes nothing
    batch_.device[i] = static_cast<uint16_t>(is_of_sum ? processes_[batch_.device[i]] : 0);
  }
  return &batch_;
}

}  // namespace gpumemprof
