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
/// from the two before it: one comparison of bytes instead of forty references.
template <class Value>
class KnownLists {
 public:
  struct Known {
    std::string bytes;  ///< behind the MARK, the APPENDS included
    Value value;
  };

  /// The list that is likely to come now; its bytes are to be compared. Null: no idea.
  const Known* guess() const {
    const uint32_t id = next_[place()];
    return id == 0 ? nullptr : &known_[id - 1];
  }
  /// The guess was right.
  void confirm() { advance(next_[place()]); }

  /// Another one has come. Ignored once what is kept takes kMostBytes.
  void learn(std::string_view bytes, const Value& value) {
    auto found = ids_.find(bytes);
    uint32_t id = found == ids_.end() ? 0 : found->second;
    if (id == 0 && bytes_ < kMostBytes) {
      bytes_ += bytes.size() + sizeof(Known) + 40;
      known_.push_back({std::string(bytes), value});
      id = static_cast<uint32_t>(known_.size());
      ids_.emplace(known_.back().bytes, id);
    }
    next_[place()] = id;
    advance(id);
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

  size_t place() const { return ((before_ * 0x9e3779b1u) ^ (last_ * 0x85ebca6bu)) >> 18; }
  void advance(uint32_t id) {
    before_ = last_;
    last_ = id;
  }

  std::deque<Known> known_;  // a deque: its texts never move
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  std::array<uint32_t, 1 << 14> next_ = {};
  uint32_t before_ = 0, last_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace gpumemprof::pickle
