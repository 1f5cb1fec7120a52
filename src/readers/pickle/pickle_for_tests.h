// Writes pickles by hand, opcode for opcode, so that tests can write what no pickler would.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace gpumemprof::for_tests {

inline std::string little_endian(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

/// SHORT_BINUNICODE
inline std::string text(std::string_view text) {
  return '\x8c' + little_endian(text.size(), 1) + std::string(text);
}
/// LONG1 of 8 bytes
inline std::string number(int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
}
inline std::string list(std::initializer_list<std::string> items) {
  std::string bytes = "](";
  for (const std::string& item : items) bytes += item;
  return bytes + 'e';
}
/// Keys and values in turn.
inline std::string dict(std::initializer_list<std::string> items) {
  std::string bytes = "}(";
  for (const std::string& item : items) bytes += item;
  return bytes + 'u';
}
inline std::string pickle(const std::string& value) { return "\x80\x04" + value + '.'; }

inline std::string event(const std::string& action, int64_t address, int64_t size,
                         const std::string& more = "") {
  return "}(" + text("action") + text(action) + text("addr") + number(address) + text("size") +
         number(size) + text("stream") + "K" + std::string(1, '\0') + more + 'u';
}
/// A whole snapshot: without segments, `events` on device 0.
inline std::string snapshot_of(const std::string& events) {
  return pickle(dict({text("segments"), "]", text("device_traces"), list({events})}));
}

}  // namespace gpumemprof::for_tests
