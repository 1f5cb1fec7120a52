// The keys of a dictionary, as their bytes stand in the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "readers/pickle/integer.h"

namespace gpumemprof::pickle {

/// A snapshot is millions of dictionaries with the same keys, each a reference to a text that was
/// written once. What a reference means never changes, so keys whose bytes are those of an earlier
/// dictionary are its keys, and nothing has to be looked up.
template <class Value>
struct DictShape {
  static constexpr size_t kMostPairs = 32;
  struct Key {
    uint64_t bytes, mask;  ///< of the reference; the mask is of its length
    uint32_t size;
    Value value;
  };

  /// The reference in [begin, end). More than kMostPairs are counted alone.
  void add(const uint8_t* begin, const uint8_t* end, const Value& value) {
    const auto size = static_cast<uint32_t>(end - begin);
    const uint64_t mask = (uint64_t{1} << 8 * size) - 1;
    if (count < kMostPairs) keys[count] = {load<uint64_t>(begin) & mask, mask, size, value};
    ++count;
  }

  std::array<Key, kMostPairs> keys;
  size_t count = 0;
};

}  // namespace gpumemprof::pickle
