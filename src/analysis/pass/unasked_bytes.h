// What a pool's blocks hold beyond what was asked for: TensorFlow's rounds sizes, and hands out a
// chunk whole that is less than twice the request.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>

namespace gpumemprof {

/// Of one device. Costs nothing where sizes are what was asked for.
class UnaskedBytes {
 public:
  /// `unasked`: of the new block at the address; what was there ended without an event.
  void on_alloc(uint64_t address, uint64_t unasked) {
    on_free(address);
    if (unasked == 0) return;
    blocks_[address] = unasked;
    live_ += unasked;
  }
  void on_free(uint64_t address) {
    if (blocks_.empty()) return;
    const auto known = blocks_.find(address);
    if (known == blocks_.end()) return;
    live_ -= known->second;
    blocks_.erase(known);
  }
  /// The device reached a new peak.
  void on_peak() { at_peak_ = live_; }
  uint64_t at_peak() const { return at_peak_; }

 private:
  absl::flat_hash_map<uint64_t, uint64_t> blocks_;  // by address
  uint64_t live_ = 0, at_peak_ = 0;
};

}  // namespace gpumemprof
