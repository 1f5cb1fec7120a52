// Numbers and bytes in and out of buffers. Reading is for hostile input: it stops at the first
// mistake and answers zeros from then on, so that a parser checks ok() once, where it matters.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gpumemprof {

inline uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

/// Reads little-endian numbers and LEB128. Owns nothing.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes)
      : begin_(reinterpret_cast<const uint8_t*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  template <class T>
  T number() {
    T value{};
    if (left() < sizeof(T)) return stop(), value;
    memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return stop(), 0;
      uint8_t byte = *at_++;
      if (shift == 63 && byte > 1) return stop(), 0;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return stop(), 0;
  }
  /// A count of things that take at least `least_bytes` each: never larger than what follows can
  /// hold.
  uint64_t count(size_t least_bytes) {
    uint64_t n = varint();
    if (n > left() / least_bytes) return stop(), 0;
    return n;
  }
  uint64_t varint_at_most(uint64_t limit) {
    uint64_t n = varint();
    if (n > limit) return stop(), 0;
    return n;
  }
  std::string_view bytes(uint64_t size) {
    if (size > left()) return stop(), std::string_view{};
    std::string_view out(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return out;
  }
  /// A length and that many bytes.
  std::string_view text() { return bytes(varint()); }
  void stop() { ok_ = false, at_ = end_; }

 private:
  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

inline void put_varint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}
template <class T>
void put_number(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
inline void put_text(std::string* out, std::string_view text) {
  put_varint(out, text.size());
  out->append(text);
}

}  // namespace gpumemprof
