// What a program freed after its last allocation: as it takes itself down, when it was not killed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gpumemprof {

/// Of each device, what was freed since its process last allocated anywhere. A device's list is
/// emptied when it is next added to, so an allocation costs one increment. Not thread-safe.
template <class Freed>
class LastFrees {
 public:
  void on_alloc(uint32_t process) {
    if (process >= allocs_.size()) allocs_.resize(size_t{process} + 1);
    ++allocs_[process];
  }
  void on_free(uint16_t device, uint32_t process, const Freed& freed) {
    if (device >= devices_.size()) devices_.resize(size_t{device} + 1);
    OfDevice& of = devices_[device];
    if (of.after_allocs != allocs(process)) of.freed.clear(), of.after_allocs = allocs(process);
    of.freed.push_back(freed);
  }
  std::span<const Freed> of(uint16_t device, uint32_t process) const {
    if (device >= devices_.size() || devices_[device].after_allocs != allocs(process)) return {};
    return devices_[device].freed;
  }

 private:
  struct OfDevice {
    uint64_t after_allocs = 0;
    std::vector<Freed> freed;
  };
  uint64_t allocs(uint32_t process) const {
    return process < allocs_.size() ? allocs_[process] : 0;
  }

  std::vector<uint64_t> allocs_;  // by process
  std::vector<OfDevice> devices_;
};

}  // namespace gpumemprof
