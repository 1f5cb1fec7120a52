// A column of whole numbers in as few bytes as they need.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/growing_column.h"

namespace gpumemprof {

/// Any numbers in any order; what is added stays as it is. Each chunk of 1,024 stores the
/// differences from its smallest, without the zero bits that all of them end with, in 0, 1, 2, 4 or
/// 8 bytes.
template <class T>
class PackedColumn {
 public:
  void push_back(T value) {
    open_.push_back(value);
    if (open_.size() == kChunk) close();
  }
  size_t size() const { return chunks_.size() * kChunk + open_.size(); }
  bool empty() const { return size() == 0; }
  T operator[](size_t index) const {
    const size_t chunk = index / kChunk, at = index % kChunk;
    if (chunk == chunks_.size()) return open_[at];
    const Chunk& in = chunks_[chunk];
    switch (in.bytes_each) {
      case 0:
        return static_cast<T>(in.least);
      case 1:
        return value<uint8_t>(in, at);
      case 2:
        return value<uint16_t>(in, at);
      case 4:
        return value<uint32_t>(in, at);
      default:
        return value<uint64_t>(in, at);
    }
  }
  /// Calls see(value) for each, in order.
  template <class See>
  void each(const See& see) const {
    for (size_t i = 0; i < size(); ++i) see((*this)[i]);
  }
  /// Whether is_so(value) of every value, in order.
  template <class IsSo>
  bool all_of(const IsSo& is_so) const {
    size_t i = 0;
    while (i < size() && is_so((*this)[i])) ++i;
    return i == size();
  }
  /// Of values that ascend: how many are less than `value`.
  size_t lower_bound(T value) const {
    return first_not([&](T of) { return of < value; });
  }
  /// Of values that ascend: how many are at most `value`.
  size_t upper_bound(T value) const {
    return first_not([&](T of) { return of <= value; });
  }

  /// Writes it, or reads it (index_archive.h).
  template <class Archive>
  void archive(Archive& archive) {
    archive.array(chunks_), archive.array(packed_), archive.array(open_);
  }
  /// After reading: whether the chunks name only values that are there.
  bool is_sound() const {
    return open_.size() < kChunk && std::ranges::all_of(chunks_, [&](const Chunk& chunk) {
             const uint64_t each = chunk.bytes_each;
             return (each == 0 || (each <= 8 && std::has_single_bit(each))) && chunk.shift < 64 &&
                    chunk.first <= packed_.size() &&
                    each * kChunk <= packed_.size() - chunk.first;
           });
  }

 private:
  static constexpr size_t kChunk = 1024;
  struct Chunk {
    uint64_t least, first;  // first: byte in packed_
    uint32_t bytes_each, shift;
  };

  template <class Stored>
  T value(const Chunk& in, size_t at) const {
    Stored stored;
    std::memcpy(&stored, packed_.data() + in.first + at * sizeof stored, sizeof stored);
    return static_cast<T>(in.least + (uint64_t{stored} << in.shift));
  }

  void close() {
    const auto [least, most] = std::ranges::minmax(open_);
    uint64_t bits = 0;
    for (const T value : open_) bits |= value - least;
    const int shift = bits == 0 ? 0 : std::countr_zero(bits);
    const uint64_t widest = (most - least) >> shift;
    const uint32_t each = widest == 0            ? 0
                          : widest <= UINT8_MAX  ? 1
                          : widest <= UINT16_MAX ? 2
                          : widest <= UINT32_MAX ? 4
                                                 : 8;
    chunks_.push_back({least, packed_.size(), each, static_cast<uint32_t>(shift)});
    if (each == 1) pack<uint8_t>(least, shift);
    if (each == 2) pack<uint16_t>(least, shift);
    if (each == 4) pack<uint32_t>(least, shift);
    if (each == 8) pack<uint64_t>(least, shift);
    open_.clear();
  }
  template <class Stored>
  void pack(uint64_t least, int shift) {
    Stored stored[kChunk];
    for (size_t i = 0; i < kChunk; ++i)
      stored[i] = static_cast<Stored>((open_[i] - least) >> shift);
    std::memcpy(packed_.extend(sizeof stored), stored, sizeof stored);
  }

  template <class Goes>
  size_t first_not(const Goes& goes) const {
    size_t low = 0, high = size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (goes((*this)[middle]))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  std::vector<Chunk> chunks_;
  GrowingColumn<uint8_t> packed_;
  std::vector<T> open_;
};

}  // namespace gpumemprof
