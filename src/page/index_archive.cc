#include "page/index_archive.h"

#include <algorithm>

#include "base/crc32c.h"

namespace gpumemprof {
namespace {

constexpr size_t kBufferBytes = 1 << 18;
constexpr size_t kChecksumBytes = sizeof(uint32_t);

}  // namespace

void IndexWriter::bytes(const void* data, size_t size) {
  if (size == 0) return;
  crc_ = crc32c(crc_, data, size);
  if (waiting_.size() + size > kBufferBytes) flush();
  if (size < kBufferBytes) {
    waiting_.append(static_cast<const char*>(data), size);
    return;
  }
  if (status_) status_ = file_.write_at(offset_, data, size);
  offset_ += size;
}

void IndexWriter::flush() {
  if (status_ && !waiting_.empty())
    status_ = file_.write_at(offset_, waiting_.data(), waiting_.size());
  offset_ += waiting_.size();
  waiting_.clear();
}

Status IndexWriter::end() {
  const uint32_t crc = crc_;
  bytes(&crc, sizeof crc);
  flush();
  return status_;
}

IndexReader::IndexReader(File& file, uint64_t size) : file_(file), size_(size) {
  if (size < kChecksumBytes)
    refuse("it is too short");
  else
    left_ = size - kChecksumBytes;
}

void IndexReader::refuse(const std::string& what) {
  if (!is_good()) return;
  why_ = "byte " + std::to_string(offset_ - (buffer_.size() - used_)) + ": " + what;
  left_ = 0;
}

void IndexReader::fill() {
  buffer_.resize(std::min<uint64_t>(kBufferBytes, size_ - offset_));
  used_ = 0;
  const auto got = file_.read_at(offset_, buffer_.data(), buffer_.size());
  const bool is_whole = got && *got == buffer_.size();
  if (!is_whole) buffer_.clear();
  offset_ += buffer_.size();
  if (!is_whole) refuse(got ? "the file has become shorter" : got.error().message);
}

void IndexReader::bytes(void* data, size_t size) {
  if (!is_good()) return;
  if (size > left_) return refuse("it ends within a value");
  left_ -= size;
  auto* out = static_cast<char*>(data);
  for (size_t wanted = size; wanted > 0;) {
    if (used_ == buffer_.size() && wanted >= kBufferBytes) {
      const auto got = file_.read_at(offset_, out, wanted);
      if (!got || *got != wanted)
        return refuse(got ? "the file has become shorter" : got.error().message);
      offset_ += wanted;
      break;
    }
    if (used_ == buffer_.size()) fill();
    if (!is_good()) return;
    const size_t part = std::min(wanted, buffer_.size() - used_);
    std::memcpy(out, buffer_.data() + used_, part);
    used_ += part, out += part, wanted -= part;
  }
  crc_ = crc32c(crc_, data, size);
}

uint64_t IndexReader::word() {
  uint64_t value = 0;
  bytes(&value, sizeof value);
  return is_good() ? value : 0;
}

/// The length of a list whose elements take at least so many bytes each; 0 if it cannot fit.
size_t IndexReader::length(size_t bytes_each) {
  const uint64_t count = word();
  if (count > left_ / bytes_each) {
    refuse("a list is longer than the file");
    return 0;
  }
  return static_cast<size_t>(count);
}

bool IndexReader::end() {
  if (!is_good()) return false;
  if (left_ != 0) refuse("it is longer than its contents");
  const uint32_t crc = crc_;
  uint32_t written = 0;
  left_ = is_good() ? sizeof written : 0;
  bytes(&written, sizeof written);
  if (is_good() && written != crc) refuse("the checksum is wrong");
  return is_good();
}

}  // namespace gpumemprof
