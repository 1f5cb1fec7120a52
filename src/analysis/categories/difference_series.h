// Amounts of several kinds at many moments, from when each block came and went: O(1) a block,
// whatever it lives through, and no memory for events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// Sample k is taken at position k * width(). Positions count from 0 (nanoseconds since a start,
/// or numbers of moments); when one falls behind the last sample, every other sample is left out
/// and the width doubles. The samples that stay are exact.
template <size_t kKinds>
class DifferenceSeries {
 public:
  using Sample = std::array<int64_t, kKinds>;
  /// `first_shift`: the width begins at 2^first_shift. `capacity` is an even number.
  explicit DifferenceSeries(unsigned first_shift = 0, size_t capacity = 512)
      : shift_(first_shift), capacity_(capacity) {}

  uint64_t width() const { return uint64_t{1} << shift_; }

  /// The block counts at positions from <= p < to.
  void add(size_t kind, uint64_t bytes, uint64_t from, uint64_t to) {
    reach(to);
    const size_t first = index(from), last = index(to);
    if (first == last) return;
    change(first)[kind] += static_cast<int64_t>(bytes);
    change(last)[kind] -= static_cast<int64_t>(bytes);
  }
  /// It counts at all positions from `from` on.
  void add_open(size_t kind, uint64_t bytes, uint64_t from) {
    reach(from);
    change(index(from))[kind] += static_cast<int64_t>(bytes);
  }
  /// The amounts at the samples up to position `end`.
  std::vector<Sample> samples(uint64_t end) {
    reach(end);
    std::vector<Sample> out;
    Sample now{};
    for (size_t i = 0; i <= end >> shift_; ++i) {
      if (i < changes_.size()) {
        for (size_t k = 0; k < kKinds; ++k) now[k] += changes_[i][k];
      }
      out.push_back(now);
    }
    return out;
  }

 private:
  /// The first sample at or after a position.
  size_t index(uint64_t position) const {
    return static_cast<size_t>((position + width() - 1) >> shift_);
  }
  Sample& change(size_t at) {
    if (at >= changes_.size()) changes_.resize(at + 1);
    return changes_[at];
  }
  void reach(uint64_t position) {
    while (position >> shift_ >= capacity_) {
      std::vector<Sample> fewer(changes_.size() / 2 + 1);
      for (size_t i = 0; i < changes_.size(); ++i) {
        for (size_t k = 0; k < kKinds; ++k) fewer[(i + 1) / 2][k] += changes_[i][k];
      }
      changes_ = std::move(fewer);
      ++shift_;
    }
  }

  unsigned shift_;
  size_t capacity_;
  std::vector<Sample> changes_;
};

}  // namespace gpumemprof
