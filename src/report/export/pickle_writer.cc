#include "report/export/pickle_writer.h"

#include <bit>

namespace gpumemprof {

// Opcodes by their characters, as in Python's pickletools.
PickleWriter::PickleWriter() : out_("\x80\x04") {}

void PickleWriter::bytes(uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out_ += static_cast<char>(value >> (8 * i));
}

void PickleWriter::begin_dict() { out_ += "}("; }
void PickleWriter::begin_list() { out_ += "]("; }

void PickleWriter::text(std::string_view text) {
  if (text.size() < 256) {
    out_ += '\x8c';
    bytes(text.size(), 1);
  } else {
    out_ += 'X';
    text = text.substr(0, UINT32_MAX);
    bytes(text.size(), 4);
  }
  out_ += text;
}

void PickleWriter::key(std::string_view text) {
  if (const auto known = keys_.find(text); known != keys_.end()) return recall(known->second);
  this->text(text);
  keys_.emplace(key_texts_.emplace_back(text), remember());
}

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value < 256) {
    out_ += 'K';
    bytes(static_cast<uint64_t>(value), 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    bytes(static_cast<uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";
    bytes(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::unsigned_integer(uint64_t value) {
  if (value <= INT64_MAX) return integer(static_cast<int64_t>(value));
  out_ += "\x8a\x09";  // a ninth byte keeps it from being negative
  bytes(value, 8);
  out_ += '\0';
}

void PickleWriter::real(double value) {
  out_ += 'G';
  bytes(__builtin_bswap64(std::bit_cast<uint64_t>(value)), 8);
}

void PickleWriter::pair(int64_t first, int64_t second) {
  integer(first);
  integer(second);
  out_ += '\x86';
}

uint32_t PickleWriter::remember() {
  out_ += '\x94';
  return remembered_++;
}

void PickleWriter::recall(uint32_t number) {
  if (number < 256) {
    out_ += 'h';
    bytes(number, 1);
  } else {
    out_ += 'j';
    bytes(number, 4);
  }
}

}  // namespace gpumemprof
