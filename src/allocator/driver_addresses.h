// Where the CUDA driver puts segments. Before PyTorch 2.12 free blocks of one size are taken by
// address, so a simulation needs it for ties.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <cstdint>
#include <memory>

#include "allocator/simulator.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Everything above what came before, with a hole between, so that neighbours never touch.
class RisingAddresses : public AddressSource {
 public:
  uint64_t place_segment(uint64_t size_bytes) override;
  uint64_t place_range(uint64_t size_bytes) override;

 private:
  uint64_t next_segment_ = 0x100000000000;
  uint64_t next_range_ = 0x400000000000;
};

/// As drivers on Linux do: the lowest hole that is large enough, else a new region of multiples of
/// 32 MiB below the others. From 145 segments of three runs on an H200 with driver 580, of which this
/// rule places 142; the other three are the first ones in the hole that the context leaves.
class FallingAddresses : public RisingAddresses {
 public:
  uint64_t place_segment(uint64_t size_bytes) override;
  void free_segment(uint64_t address, uint64_t size_bytes) override;
  /// Goes on from where a driver put the next segment. False where it would have been put elsewhere.
  bool follow(uint64_t address, uint64_t size_bytes);

 private:
  using Holes = absl::btree_map<uint64_t, uint64_t>;  // size by address
  /// The address of the lowest hole of at least `bytes`, 0 where there is none.
  uint64_t find_hole(uint64_t bytes) const;
  void add_hole(uint64_t address, uint64_t bytes);
  Holes::iterator remove_hole(Holes::iterator hole);
  /// The hole loses the `bytes` from `address` on.
  void take(Holes::iterator hole, uint64_t address, uint64_t bytes);
  uint64_t place_in_region(uint64_t bytes);

  static constexpr uint64_t kTop = 0x700000000000;
  uint64_t lowest_ = kTop;
  Holes holes_;
  absl::btree_map<uint64_t, absl::btree_set<uint64_t>> by_size_;  // the same holes
  absl::btree_set<uint64_t> regions_;  // where they begin: holes of two are not one
};

/// Falling where that tells more than half of the recorded segments' places.
std::unique_ptr<AddressSource> driver_addresses(const AllocatorTrace& trace);

}  // namespace gpumemprof
