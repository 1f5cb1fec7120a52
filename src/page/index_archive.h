// The bytes of an index: a run's tables are written and read by the same functions.
//
// Numbers are eight bytes, little endian; an array is its length and its memory; at the end is the
// CRC32C of everything before it. Input is hostile: a length is compared with the remaining bytes
// before anything is allocated, and no value may be used before end() has returned true.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/file.h"

namespace gpumemprof {

class IndexWriter {
 public:
  explicit IndexWriter(File& file) : file_(file) {}

  void bytes(const void* data, size_t size);
  void number(std::integral auto& value) { word(static_cast<uint64_t>(value)); }
  void flag(bool& value) { word(value ? 1 : 0); }
  template <class Code>
  void code(Code& value, size_t) {
    word(static_cast<uint64_t>(value));
  }
  void text(const std::string& value) { word(value.size()), bytes(value.data(), value.size()); }
  template <class List>
  void array(const List& list) {
    static_assert(std::has_unique_object_representations_v<typename List::value_type>);
    word(list.size()), bytes(list.data(), list.size() * sizeof(list[0]));
  }
  template <class List, class Write>
  void each(List& list, const Write& write) {
    word(list.size());
    for (auto& one : list) write(one);
  }
  /// The checksum, and everything flushed to the file. Errors: those of the file.
  Status end();

 private:
  void word(uint64_t value) { bytes(&value, sizeof value); }
  void flush();

  File& file_;
  std::string waiting_;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
  Status status_;
};

class IndexReader {
 public:
  /// `size`: of the file.
  IndexReader(File& file, uint64_t size);

  void bytes(void* data, size_t size);
  template <std::integral Number>
  void number(Number& value) {
    const uint64_t read = word();
    value = static_cast<Number>(read);
    if (static_cast<uint64_t>(value) != read) refuse("a number is too large");
  }
  void flag(bool& value) { value = word() != 0; }
  template <class Code>
  void code(Code& value, size_t count) {
    const uint64_t read = word();
    if (read >= count) return refuse("a code is not known");
    value = static_cast<Code>(read);
  }
  void text(std::string& value) {
    value.resize(length(1));
    bytes(value.data(), value.size());
  }
  template <class List>
  void array(List& list) {
    static_assert(std::has_unique_object_representations_v<typename List::value_type>);
    list.resize(length(sizeof(list[0])));
    bytes(list.data(), list.size() * sizeof(list[0]));
  }
  template <class List, class Read>
  void each(List& list, const Read& read) {
    list.clear();
    for (uint64_t left = length(1); left > 0 && is_good(); --left) read(list.emplace_back());
  }

  bool is_good() const { return why_.empty(); }
  /// One line, with the byte; empty without an error so far.
  const std::string& why() const { return why_; }
  void refuse(const std::string& what);
  /// True if everything was read and is as it was written.
  bool end();

 private:
  uint64_t word();
  size_t length(size_t bytes_each);
  void fill();

  File& file_;
  std::string buffer_;
  size_t used_ = 0;      // of the buffer
  uint64_t offset_ = 0;  // in the file, behind the buffer
  uint64_t left_ = 0;    // bytes that are not handed out yet
  uint64_t size_ = 0;
  uint32_t crc_ = 0;
  std::string why_;
};

}  // namespace gpumemprof
