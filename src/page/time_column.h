// Times of events, four bytes each if they are close together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/growing_column.h"

namespace gpumemprof {

/// Any 64-bit times in any order; each chunk stores the differences from its smallest.
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
  /// Writes it, or reads it (index_archive.h).
  template <class Archive>
  void archive(Archive& archive) {
    archive.each(chunks_, [&](Chunk& chunk) {
      archive.number(chunk.base_ns), archive.number(chunk.first), archive.number(chunk.wide);
    });
    archive.array(narrow_), archive.array(wide_), archive.array(pending_);
  }
  /// After reading: whether the chunks name only values that are there.
  bool is_sound() const {
    const auto is_there = [](uint64_t first, size_t size) {
      return size >= kChunk && first <= size - kChunk;
    };
    return pending_.size() < kChunk && std::ranges::all_of(chunks_, [&](const Chunk& chunk) {
             return chunk.wide == kNarrow ? is_there(chunk.first, narrow_.size())
                                          : is_there(chunk.wide, wide_.size());
           });
  }

 private:
  static constexpr size_t kChunk = 4096;
  static constexpr uint64_t kNarrow = UINT64_MAX;
  struct Chunk {
    uint64_t base_ns;
    uint64_t first, wide;  // in narrow_, or in wide_
  };
  void close();

  std::vector<Chunk> chunks_;
  GrowingColumn<uint32_t> narrow_;
  std::vector<uint64_t> wide_;
  std::vector<uint64_t> pending_;
};

}  // namespace gpumemprof
