// The part of a file that is being read: a buffer that slides over it. Not a mapping, because a
// file that is cut short while we read it must end in an error, not in a signal, and because mapped
// pages count as memory of ours.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/file.h"

namespace gpumemprof {

/// Bytes [begin(), end()) of the buffer are the file's. Behind end() there are always kMargin zero
/// bytes or more file, so that a reader may decode any short opcode without asking: it looks
/// afterwards whether it has gone beyond end().
class Window {
 public:
  static constexpr size_t kMargin = 512;

  /// `file` must outlive the window. `size_bytes` is the file's.
  Window(File& file, uint64_t size_bytes);

  const uint8_t* begin() const { return buffer_.get(); }
  const uint8_t* end() const { return buffer_.get() + filled_; }
  /// Where the reader should ask for more: fewer than kMargin bytes are left behind it. Equal to
  /// end() once the rest of the file is in the buffer.
  const uint8_t* refill_at() const {
    return at_end() || filled_ < kMargin ? end() : end() - kMargin;
  }
  bool at_end() const { return base_ + filled_ >= size_; }
  uint64_t size_bytes() const { return size_; }
  uint64_t offset_of(const uint8_t* at) const {
    return base_ + static_cast<uint64_t>(at - buffer_.get());
  }

  /// Slides the buffer so that `at` is its first byte, and fills it. Errors: kSystem.
  Status refill(const uint8_t** at);
  /// Slides it to any place of the file.
  Status seek(uint64_t offset, const uint8_t** at);

 private:
  Status fill();

  File& file_;
  uint64_t size_;
  uint64_t base_ = 0;  ///< offset in the file of the buffer's first byte
  size_t filled_ = 0;
  size_t capacity_;
  std::unique_ptr<uint8_t[]> buffer_;
};

}  // namespace gpumemprof
