// The id that a table has already given to a value.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/large_pages.h"

namespace gpumemprof {

/// Ids by hash of a value that stays in the table: open addressing, 8 bytes per slot, at most three
/// quarters full. A look-up touches almost only the value itself, and growing touches none of them.
/// Not thread-safe.
class IdIndex {
 public:
  /// The id inserted with `hash` for which `is_it(id)` is true; otherwise `next`, which is
  /// inserted.
  template <class IsIt>
  uint32_t find_or_put(uint64_t hash, uint32_t next, const IsIt& is_it) {
    if (4 * (size_ + 1) > 3 * slots_.size()) [[unlikely]]
      grow();
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = tag & mask();; at = (at + 1) & mask()) {
      Slot& slot = slots_[at];
      if (slot.id == kNone) {
        slot = {tag, next};
        ++size_;
        return next;
      }
      if (slot.tag == tag && is_it(slot.id)) return slot.id;
    }
  }
  /// The same without inserting.
  template <class IsIt>
  std::optional<uint32_t> find(uint64_t hash, const IsIt& is_it) const {
    if (slots_.empty()) return std::nullopt;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = tag & mask(); slots_[at].id != kNone; at = (at + 1) & mask()) {
      if (slots_[at].tag == tag && is_it(slots_[at].id)) return slots_[at].id;
    }
    return std::nullopt;
  }
  uint64_t hash(uint64_t a, uint64_t b) const { return mix(mix(a ^ seed_, kOdd) ^ b, seed_ | 1); }
  uint64_t hash(std::string_view text) const {
    uint64_t state = seed_ ^ text.size(), word;
    for (; text.size() > sizeof(word); text.remove_prefix(sizeof(word))) {
      memcpy(&word, text.data(), sizeof(word));
      state = mix(state ^ word, kOdd);
    }
    word = 0;
    if (!text.empty()) memcpy(&word, text.data(), text.size());
    return hash(state, word);
  }

 private:
  struct Slot {
    uint32_t tag = 0, id = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kLeastSlots = 16;
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;

  static uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
  }
  size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<Slot, LargePages<Slot>> old(slots_.empty() ? kLeastSlots : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id == kNone) continue;
      size_t at = slot.tag & mask();
      while (slots_[at].id != kNone) at = (at + 1) & mask();
      slots_[at] = slot;
    }
  }

  std::vector<Slot, LargePages<Slot>> slots_;
  size_t size_ = 0;
  // Different in every run, so that no file can be crafted to collide.
  uint64_t seed_ = reinterpret_cast<uintptr_t>(this) * kOdd;
};

}  // namespace gpumemprof
