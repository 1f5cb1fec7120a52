// Numbers by address, for tables that are filled and emptied at every event.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/large_pages.h"
#include "base/prefetch.h"

namespace gpumemprof {

/// Open addressing, at most half full, without tombstones: a look-up, an insertion and an erasure
/// almost always touch one cache line. Half the instructions of absl::flat_hash_map if an entry
/// lives for a few events. Numbers that follow one another have slots that do, in runs of
/// kNeighbours: what is made one after the other is often looked up so. Any address is valid. Not
/// thread-safe.
class AddressMap {
 public:
  AddressMap() : slots_(kLeastSlots), seed_(reinterpret_cast<uintptr_t>(slots_.data()) * kOdd) {}

  size_t size() const { return size_; }
  /// Reserves space for `count` numbers in total.
  void reserve(size_t count) {
    if (2 * count > slots_.size()) resize(std::bit_ceil(2 * count));
  }
  /// Null if absent. Valid until the next insertion or erasure.
  const uint32_t* find(uint64_t address) const {
    for (size_t at = place(address);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (!slot.is_used) return nullptr;
      if (slot.address == address) return &slot.number;
    }
  }
  uint32_t* find(uint64_t address) {
    return const_cast<uint32_t*>(std::as_const(*this).find(address));
  }
  struct Inserted {
    uint32_t* number;
    bool is_new;
  };
  /// The existing number, or else `number`, which is inserted.
  Inserted try_emplace(uint64_t address, uint32_t number) {
    if (2 * size_ >= slots_.size()) [[unlikely]]
      grow();
    for (size_t at = place(address);; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (!slot.is_used) {
        slot = {address, number, 1};
        ++size_;
        return {&slot.number, true};
      }
      if (slot.address == address) return {&slot.number, false};
    }
  }
  /// `number` is the result of find() or try_emplace().
  void erase(uint32_t* number) {
    auto* slot = reinterpret_cast<Slot*>(reinterpret_cast<char*>(number) - offsetof(Slot, number));
    size_t hole = static_cast<size_t>(slot - slots_.data());
    --size_;
    // Entries displaced by a collision move into the hole.
    for (size_t at = (hole + 1) & mask_; slots_[at].is_used; at = (at + 1) & mask_) {
      const size_t own = place(slots_[at].address);
      if (((at - own) & mask_) < ((at - hole) & mask_)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].is_used = 0;
  }
  /// Calls `see(address, number)` for each, in no particular order.
  template <class See>
  void for_each(const See& see) const {
    for (const Slot& slot : slots_) {
      if (slot.is_used) see(slot.address, slot.number);
    }
  }
  /// Prefetches an address that will be looked up soon.
  void prefetch(uint64_t address) const { prefetch_line(&slots_[place(address)]); }

 private:
  struct Slot {
    uint64_t address = 0;
    uint32_t number = 0;
    uint32_t is_used = 0;
  };
  using Slots = std::vector<Slot, LargePages<Slot>>;  // looked up at random: few pages to find
  static constexpr size_t kLeastSlots = 16;  // one for each device of thousands of processes
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  static constexpr uint64_t kNeighbours = 32;

  // A different seed in every run, so that no file can be crafted to collide.
  size_t place(uint64_t address) const {
    const auto product = static_cast<unsigned __int128>(address / kNeighbours ^ seed_) * kOdd;
    const auto run = static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
    return (run + address % kNeighbours) & mask_;
  }
  void grow() { resize(slots_.size() * 2); }
  void resize(size_t slots) {
    Slots old(slots);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.is_used) try_emplace(slot.address, slot.number);
    }
  }

  Slots slots_;
  size_t mask_ = kLeastSlots - 1;
  size_t size_ = 0;
  uint64_t seed_;
};

}  // namespace gpumemprof
