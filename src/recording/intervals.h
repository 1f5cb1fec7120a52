// Which ordinals of a stream are present.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace gpumemprof {

/// Ordinals [from, to) of a stream.
struct Interval {
  uint64_t from, to;
};

/// Disjoint intervals that do not touch, ascending. Adding one, in any order, takes logarithmic
/// time, because the file determines the order.
class Intervals {
 public:
  void add(Interval interval);
  void add(const Intervals& others);
  /// How many of [from, to) they cover.
  uint64_t covered(uint64_t from, uint64_t to) const;
  /// Their intersections with [from, to), in time logarithmic plus linear in the number of results.
  Intervals within(uint64_t from, uint64_t to) const;
  /// How many ordinals before the last one are in none.
  uint64_t missing() const;

  size_t size() const { return ends_.size(); }
  /// Pairs of from and to.
  auto begin() const { return ends_.begin(); }
  auto end() const { return ends_.end(); }
  /// The intervals examined so far.
  uint64_t steps() const { return steps_; }

 private:
  using Ends = std::map<uint64_t, uint64_t>;  // by from: to
  /// The first that ends at or after `place`.
  Ends::const_iterator first_ending_from(uint64_t place) const;
  template <class See>
  void each_within(uint64_t from, uint64_t to, const See& see) const;

  Ends ends_;
  uint64_t steps_ = 0;
};

}  // namespace gpumemprof
