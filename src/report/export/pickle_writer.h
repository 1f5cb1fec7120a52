// Writes a pickle of plain data, protocol 4: dictionaries, lists, texts, numbers; nothing that
// could run.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace gpumemprof {

/// Appends opcodes to a text that the caller takes away now and then. The order of calls must nest
/// as the data does; nothing is checked.
class PickleWriter {
 public:
  PickleWriter();

  /// dict: begin, then key() and a value in turn, then end. Lists alike, without keys.
  void begin_dict();
  void end_dict() { out_ += 'u'; }
  void begin_list();
  void end_list() { out_ += 'e'; }

  /// A key, or any text that comes again: written whole once.
  void key(std::string_view text);
  void text(std::string_view text);
  void integer(int64_t value);
  void unsigned_integer(uint64_t value);
  void real(double value);
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void pair(int64_t first, int64_t second);

  /// Gives the value that was written last a number under which recall() writes it again.
  uint32_t remember();
  void recall(uint32_t number);

  /// The last byte. Nothing may be written behind it.
  void finish() { out_ += '.'; }
  std::string& ready() { return out_; }

 private:
  void bytes(uint64_t value, int count);

  std::string out_;
  uint32_t remembered_ = 0;
  std::deque<std::string> key_texts_;  // a deque: its strings never move
  absl::flat_hash_map<std::string_view, uint32_t> keys_;
};

}  // namespace gpumemprof
