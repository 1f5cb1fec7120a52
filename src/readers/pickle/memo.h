// A pickle's memo: four bytes an entry, since a snapshot of 1 GB has twenty million of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gpumemprof {

/// Entries are numbered from 0 without gaps, as every writer does; 0 is never a stored value, it
/// means "no such entry". Grows by chunks: nothing is copied, at most one chunk is held too much.
class Memo {
 public:
  static constexpr uint32_t kChunk = 1 << 16;
  static constexpr uint64_t kMostEntries = uint64_t{1} << 32;

  uint64_t size() const { return size_; }
  /// True where the next add() takes a new chunk of memory.
  bool is_full() const { return size_ % kChunk == 0; }

  uint32_t get(uint32_t index) const {
    return index < size_ ? chunks_[index / kChunk][index % kChunk] : 0;
  }
  /// `index` must be below size().
  void set(uint32_t index, uint32_t entry) { chunks_[index / kChunk][index % kChunk] = entry; }
  void add(uint32_t entry) {
    if (is_full()) chunks_.push_back(std::make_unique_for_overwrite<uint32_t[]>(kChunk));
    chunks_[size_ / kChunk][size_ % kChunk] = entry;
    ++size_;
  }

 private:
  std::vector<std::unique_ptr<uint32_t[]>> chunks_;
  uint64_t size_ = 0;
};

}  // namespace gpumemprof
