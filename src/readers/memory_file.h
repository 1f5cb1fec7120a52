// Bytes in memory as a file that can only be read: for tests and fuzzing.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/file.h"

namespace gpumemprof {

class MemoryFile final : public File {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& path() const override { return path_; }
  Result<uint64_t> size() override { return claimed_bytes_ != 0 ? claimed_bytes_ : bytes_.size(); }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t count = std::min(size, bytes_.size() - static_cast<size_t>(offset));
    std::memcpy(data, bytes_.data() + offset, count);
    return count;
  }
  Status write_at(uint64_t, const void*, size_t) override { return refuse(); }
  uint64_t next_data(uint64_t offset, uint64_t) override { return offset; }
  Result<uint64_t> punch(uint64_t, uint64_t) override { return refuse(); }
  Result<uint64_t> add_at(uint64_t, uint64_t) override { return refuse(); }
  bool lock(bool) override { return true; }
  void unlock() override {}

  /// As if it became shorter after its size was asked.
  void claim(uint64_t bytes) { claimed_bytes_ = bytes; }

 private:
  static std::unexpected<Error> refuse() { return fail(ErrorCode::kSystem, "read only"); }

  std::string bytes_;
  std::string path_ = "memory";
  uint64_t claimed_bytes_ = 0;
};

}  // namespace gpumemprof
