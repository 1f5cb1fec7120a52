#include "recording/process_entries.h"

namespace gpumemprof {
namespace {

std::tuple<int8_t, int8_t, uint8_t, bool, std::string> key_of(const Device& device) {
  return {device.type, device.index, static_cast<uint8_t>(device.layer), device.size_is_requested,
          device.name};
}

/// A process comes after those before it, and so do its entries.
template <class Entry>
size_t first_of(const std::vector<Entry>& entries, uint32_t process) {
  size_t first = entries.size();
  while (first > 0 && entries[first - 1].process == process) --first;
  return first;
}

}  // namespace

ProcessEntries::ProcessEntries(Tables* tables, uint32_t process)
    : tables_(tables),
      process_(process),
      devices_seen_(first_of(tables->devices, process)),
      allocators_seen_(first_of(tables->allocators, process)) {}

void ProcessEntries::learn_devices() {
  for (; devices_seen_ < tables_->devices.size(); ++devices_seen_, ++steps_) {
    const Device& device = tables_->devices[devices_seen_];
    if (device.process != process_) continue;
    devices_.try_emplace(key_of(device), static_cast<int32_t>(devices_seen_));
  }
}

void ProcessEntries::learn_allocators() {
  for (; allocators_seen_ < tables_->allocators.size(); ++allocators_seen_, ++steps_) {
    const FollowedAllocator& one = tables_->allocators[allocators_seen_];
    if (one.process == process_) allocators_.try_emplace({one.type, one.index}, allocators_seen_);
  }
}

int32_t ProcessEntries::device(const Device& wanted) {
  DeviceKey key = key_of(wanted);
  if (const auto known = devices_.find(key); known != devices_.end()) return known->second;
  learn_devices();
  const auto [at, is_new] = devices_.try_emplace(std::move(key), -1);
  if (is_new && tables_->devices.size() <= UINT16_MAX) {
    at->second = static_cast<int32_t>(tables_->devices.size());
    tables_->devices.push_back(wanted);
  }
  return at->second;
}

void ProcessEntries::add_allocator(const FollowedAllocator& said) {
  auto known = allocators_.find({said.type, said.index});
  if (known == allocators_.end()) {
    learn_allocators();
    known = allocators_.find({said.type, said.index});
  }
  if (known == allocators_.end()) {
    tables_->allocators.push_back(said);
    return;
  }
  FollowedAllocator& one = tables_->allocators[known->second];
  std::vector<FollowedAllocator> both{std::move(one)};
  gpumemprof::add_allocator(said, &both);
  one = std::move(both.front());
}

}  // namespace gpumemprof
