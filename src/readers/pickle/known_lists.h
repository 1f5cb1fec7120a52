// Lists that have been read before, recognised by their bytes.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>

#include "readers/pickle/opcodes.h"

namespace gpumemprof::pickle {

/// Three quarters of a snapshot are lists of references to frames, and a training loop repeats the
/// same few hundred in the same order. What a reference means never changes, so a list of nothing
/// but references whose bytes are those of an earlier one is that one. The next list is guessed
/// from those before it, from six where that has happened before (nineteen of twenty lists of a
/// training loop), else from two: one comparison of bytes instead of forty references.
template <class Value>
class KnownLists {
 public:
  struct Known {
    std::string bytes;  ///< behind the MARK, the APPENDS included
    Value value;
    uint32_t id;  ///< from 1
  };

  /// The list that is likely to come now, by the first or the second way; its bytes are to be
  /// compared. Null: no idea.
  const Known* guess(bool second) const {
    const uint32_t id = second ? after_two_[place_of_two()] : after_six_[place_of_six()];
    return id == 0 ? nullptr : &known_[id - 1];
  }
  /// The guess was right.
  void confirm(const Known& known) { came(known.id); }

  /// Another one has come. Ignored once what is kept takes kMostBytes.
  void learn(std::string_view bytes, const Value& value) {
    const bool is_full = bytes_ >= kMostBytes;
    if (is_full && ++not_found_ > kManyLists && not_found_ % kLookAtEach != 0) return came(0);
    auto found = ids_.find(bytes);
    uint32_t id = found == ids_.end() ? 0 : found->second;
    if (id == 0 && !is_full) {
      bytes_ += bytes.size() + sizeof(Known) + 40;
      id = static_cast<uint32_t>(known_.size()) + 1;
      known_.push_back({std::string(bytes), value, id});
      ids_.emplace(known_.back().bytes, id);
    }
    came(id);
  }

  /// True where [begin, end) holds references and nothing else.
  static bool only_references(const uint8_t* begin, const uint8_t* end) {
    while (begin < end) {
      if (*begin != kBinGet && *begin != kLongBinGet) return false;
      begin += *begin == kBinGet ? 2 : 5;
    }
    return begin == end;
  }

 private:
  static constexpr uint64_t kMostBytes = 8 << 20;
  // Once all that is kept is full: behind so many lists that were none of it, few are looked for.
  static constexpr uint64_t kManyLists = 1024, kLookAtEach = 16;

  // Ten bits of each of the last six, and the last two in full.
  size_t place_of_six() const { return before_ * 0x9e3779b97f4a7c15u >> 49; }
  size_t place_of_two() const { return two_ * 0x9e3779b97f4a7c15u >> 50; }
  void came(uint32_t id) {
    if (id != 0) not_found_ = 0;
    after_six_[place_of_six()] = after_two_[place_of_two()] = id;
    before_ = (before_ << 10 ^ id) & ((uint64_t{1} << 60) - 1);
    two_ = two_ << 32 | id;
  }

  std::deque<Known> known_;  // a deque: its texts never move
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  std::array<uint32_t, 1 << 15> after_six_ = {};
  std::array<uint32_t, 1 << 14> after_two_ = {};
  uint64_t before_ = 0, two_ = 0;
  uint64_t bytes_ = 0;
  uint64_t not_found_ = 0;  // of those that came since one was, once it is full
};

}  // namespace gpumemprof::pickle
