// A pickle's memo: four bytes an entry, since a snapshot of 1 GB has twenty million of them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/large_pages.h"

namespace gpumemprof {

/// Entries are numbered from 0 without gaps, as every writer does; 0 is never a stored value, it
/// means "no such entry". Grows by chunks: nothing is copied. The first few have memory of their
/// own, as most files are small; then it comes for several at once, in large pages.
class Memo {
 public:
  static constexpr uint32_t kChunk = 1 << 16;
  static constexpr uint64_t kMostEntries = uint64_t{1} << 32;

  Memo() = default;
  Memo(const Memo&) = delete;
  Memo& operator=(const Memo&) = delete;
  ~Memo() {
    for (uint32_t* run : runs_) LargePages<uint32_t>().deallocate(run, kRunChunks * kChunk);
  }

  uint64_t size() const { return size_; }
  /// True where the next add() takes a new chunk of memory.
  bool is_full() const { return size_ % kChunk == 0; }

  uint32_t get(uint32_t index) const {
    return index < size_ ? chunks_[index / kChunk][index % kChunk] : 0;
  }
  /// `index` must be below size().
  void set(uint32_t index, uint32_t entry) { chunks_[index / kChunk][index % kChunk] = entry; }
  void add(uint32_t entry) {
    if (is_full()) add_chunk();
    add_to_chunk(entry);
  }
  /// The same where !is_full().
  void add_to_chunk(uint32_t entry) { chunk_[size_++ % kChunk] = entry; }

 private:
  static constexpr size_t kRunChunks = LargePages<uint32_t>::kPageBytes / sizeof(uint32_t) / kChunk;

  void add_chunk() {
    const size_t in_run = chunks_.size() % kRunChunks;
    if (chunks_.size() < kRunChunks) {
      first_.push_back(std::make_unique_for_overwrite<uint32_t[]>(kChunk));
      chunk_ = first_.back().get();
    } else {
      if (in_run == 0) runs_.push_back(LargePages<uint32_t>().allocate(kRunChunks * kChunk));
      chunk_ = runs_.back() + in_run * kChunk;
    }
    chunks_.push_back(chunk_);
  }

  std::vector<uint32_t*> chunks_;
  std::vector<std::unique_ptr<uint32_t[]>> first_;
  std::vector<uint32_t*> runs_;  // each of kRunChunks chunks
  uint32_t* chunk_ = nullptr;    // the last one
  uint64_t size_ = 0;
};

}  // namespace gpumemprof
