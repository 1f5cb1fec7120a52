#include "readers/pickle/window.h"

#include <algorithm>
#include <cstring>

namespace gpumemprof {
namespace {

// Small enough to stay in the second-level cache while it is decoded.
constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

Window::Window(File& file, uint64_t size_bytes)
    : file_(file),
      size_(size_bytes),
      capacity_(static_cast<size_t>(std::min<uint64_t>(kBufferBytes, size_bytes + 1))),
      buffer_(std::make_unique<uint8_t[]>(capacity_ + kMargin)) {}

Status Window::fill() {
  const uint64_t left = size_ - std::min(size_, base_ + filled_);
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(capacity_ - filled_, left));
  auto got = file_.read_at(base_ + filled_, buffer_.get() + filled_, wanted);
  if (!got) return std::unexpected(got.error());
  filled_ += *got;
  if (*got < wanted) size_ = base_ + filled_;  // somebody cut it meanwhile
  std::memset(buffer_.get() + filled_, 0, kMargin);
  return {};
}

Status Window::refill(const uint8_t** at) {
  const size_t done = std::min(static_cast<size_t>(*at - buffer_.get()), filled_);
  std::memmove(buffer_.get(), buffer_.get() + done, filled_ - done);
  base_ += done;
  filled_ -= done;
  *at = buffer_.get();
  return fill();
}

Status Window::seek(uint64_t offset, const uint8_t** at) {
  *at = buffer_.get();
  if (offset >= base_ && offset <= base_ + filled_) {
    *at += offset - base_;
    return {};
  }
  base_ = offset;
  filled_ = 0;
  return fill();
}

}  // namespace gpumemprof
