#include "probe/python_code.h"

namespace gpumemprof::probe {
namespace {

size_t encode_utf8(uint32_t c, char out[4]) {
  if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
  if (c < 0x80) return out[0] = static_cast<char>(c), 1;
  if (c < 0x800) {
    out[0] = static_cast<char>(0xc0 | c >> 6);
    out[1] = static_cast<char>(0x80 | (c & 63));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xe0 | c >> 12);
    out[1] = static_cast<char>(0x80 | (c >> 6 & 63));
    out[2] = static_cast<char>(0x80 | (c & 63));
    return 3;
  }
  out[0] = static_cast<char>(0xf0 | c >> 18);
  out[1] = static_cast<char>(0x80 | (c >> 12 & 63));
  out[2] = static_cast<char>(0x80 | (c >> 6 & 63));
  out[3] = static_cast<char>(0x80 | (c & 63));
  return 4;
}

/// Reads the varints of a location table; past the end it yields zeros.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : p_(data), end_(data + size) {}
  bool done() const { return p_ >= end_; }
  uint8_t byte() { return p_ < end_ ? *p_++ : 0; }
  void skip(size_t n) { p_ = n < static_cast<size_t>(end_ - p_) ? p_ + n : end_; }
  /// 6 bits a byte, bit 6 set while more follow.
  uint32_t varint() {
    uint32_t value = 0, shift = 0;
    uint8_t b;
    do {
      b = byte();
      if (shift < 32) value |= static_cast<uint32_t>(b & 63) << shift;
      shift += 6;
    } while ((b & 64) && !done());
    return value;
  }
  int32_t signed_varint() {
    uint32_t v = varint();
    return v & 1 ? -static_cast<int32_t>(v >> 1) : static_cast<int32_t>(v >> 1);
  }

 private:
  const uint8_t* p_;
  const uint8_t* end_;
};

}  // namespace

size_t python_string(const PythonLayout& layout, const void* str, char* out, size_t size) {
  if (!str) return 0;
  uint32_t bits = load<uint32_t>(str, layout.str_state);
  bits >>= layout.str_kind_bit;
  uint32_t kind = bits & 7;  // 1, 2 or 4 bytes a character
  bool compact = bits >> 3 & 1, ascii = bits >> 4 & 1;
  if (!compact) return 0;  // names of code are always compact
  size_t length = load<uint64_t>(str, layout.str_length);
  uint32_t data = ascii ? layout.str_ascii_data : layout.str_compact_data;
  size_t used = 0;
  for (size_t i = 0; i < length; ++i) {
    uint32_t c = 0;
    memcpy(&c, static_cast<const char*>(str) + data + i * kind, kind <= 4 ? kind : 1);
    char bytes[4];
    size_t n = encode_utf8(c, bytes);
    if (used + n > size) break;
    memcpy(out + used, bytes, n);
    used += n;
  }
  return used;
}

uint32_t line_of_unit(const uint8_t* table, size_t size, int32_t first_line, int64_t unit) {
  Bytes bytes(table, size);
  int64_t line = first_line, at = 0;
  while (!bytes.done()) {
    uint8_t head = bytes.byte();
    int kind = head >> 3 & 15;
    at += (head & 7) + 1;
    if (kind == 14) {  // long form: line delta, end line delta, two columns
      line += bytes.signed_varint();
      bytes.varint(), bytes.varint(), bytes.varint();
    } else if (kind == 13) {  // no columns
      line += bytes.signed_varint();
    } else if (kind >= 10 && kind <= 12) {  // one line, two column bytes
      line += kind - 10;
      bytes.skip(2);
    } else if (kind < 10) {  // short form: same line, one column byte
      bytes.skip(1);
    }
    if (unit < at) return kind == 15 || line < 0 ? 0 : static_cast<uint32_t>(line);
  }
  return 0;
}

uint32_t line_of_byte(LineTable kind, const uint8_t* table, size_t size, int32_t first_line,
                      int64_t at) {
  int64_t line = first_line, end = 0;
  for (size_t i = 0; i + 2 <= size; i += 2) {
    const auto delta = static_cast<int8_t>(table[i + 1]);
    end += table[i];
    if (kind == LineTable::kNumbers) {  // the address at which the line changes, and by how much
      if (end > at) break;
      line += delta;
      continue;
    }
    constexpr int8_t kNoLine = -128;
    if (delta != kNoLine) line += delta;
    if (at < end) return delta == kNoLine || line < 0 ? 0 : static_cast<uint32_t>(line);
  }
  if (kind == LineTable::kLines) return 0;  // past the table's end
  return line < 0 ? 0 : static_cast<uint32_t>(line);
}

uint32_t python_line(const PythonLayout& layout, const char* code, uint64_t begin,
                     uint64_t place) {
  const char* object = load<const char*>(code, layout.code_line_table);
  if (!object) return 0;
  const auto* table = reinterpret_cast<const uint8_t*>(object) + layout.bytes_data;
  const size_t size = load<uint64_t>(object, layout.bytes_size);
  const int32_t first_line = load<int32_t>(code, layout.code_first_line);
  if (layout.packs_place()) {
    const uint32_t number = place & kBeforeFirst;
    if (number == kFarPlace) return 0;
    if (number == kBeforeFirst) return first_line < 0 ? 0 : static_cast<uint32_t>(first_line);
    const int64_t at = layout.lines == LineTable::kLines ? 2 * int64_t{number} : number;
    return line_of_byte(layout.lines, table, size, first_line, at);
  }
  if (begin == 0) return 0;
  int64_t unit = static_cast<int64_t>(place - begin) / 2;
  // Before a function's first instruction (a generator that has not started) its line is the first
  // one.
  if (unit < 0) unit = 0;
  return line_of_unit(table, size, first_line, unit);
}

}  // namespace gpumemprof::probe
