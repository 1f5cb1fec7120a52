// Times of events, four bytes each where they lie near each other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_pages.h"

namespace gpumemprof {

/// Any 64-bit times in any order; those of one chunk are kept as what they are beyond its least.
class TimeColumn {
 public:
  void add(uint64_t time_ns) {
    pending_.push_back(time_ns);
    if (pending_.size() == kChunk) close();
  }
  size_t size() const { return chunks_.size() * kChunk + pending_.size(); }
  uint64_t operator[](size_t index) const {
    const size_t chunk = index / kChunk, at = index % kChunk;
    if (chunk == chunks_.size()) return pending_[at];
    const Chunk& in = chunks_[chunk];
    if (in.wide != kNarrow) return wide_[in.wide + at];
    return in.base_ns + narrow_[in.first + at];
  }

 private:
  static constexpr size_t kChunk = 4096;
  static constexpr size_t kNarrow = SIZE_MAX;
  struct Chunk {
    uint64_t base_ns;
    size_t first, wide;  // in narrow_, or in wide_
  };
  void close();

  std::vector<Chunk> chunks_;
  std::vector<uint32_t, LargePages<uint32_t>> narrow_;
  std::vector<uint64_t> wide_;
  std::vector<uint64_t> pending_;
};

}  // namespace gpumemprof
