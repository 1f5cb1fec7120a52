// Understands the values of a snapshot from the inside out: a dictionary with an action is an
// event, a list of events is a trace. So no order of keys matters, nothing is kept that is of no
// interest, and unknown keys may hold anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "readers/torch_snapshot/keys.h"
#include "readers/torch_snapshot/parts.h"
#include "readers/torch_snapshot/stacks.h"
#include "readers/torch_snapshot/texts.h"
#include "readers/torch_snapshot/value.h"

namespace gpumemprof::torch_snapshot {

inline constexpr size_t kMostIndexes = 1 << 16;  ///< streams or pools of one device

/// What pickle::Machine and the JSON input build with; pickle/machine.h says what each call means.
/// A value of a wrong type becomes Kind::kWrong and is an error only where the snapshot needs it,
/// so that dictionaries of other tools that look like ours do no harm.
class Builder {
 public:
  using Value = torch_snapshot::Value;
  static constexpr uint32_t kReferred = kReferredBit;

  /// `limit_bytes`: how much memory what is kept may take.
  explicit Builder(uint64_t limit_bytes);
  Builder(const Builder&) = delete;

  Value none() const { return {Kind::kNone}; }
  Value boolean(bool value) const { return {Kind::kBool, 0, value}; }
  Value integer(int64_t value) const { return {Kind::kInteger, 0, static_cast<uint64_t>(value)}; }
  Value unsigned_integer(uint64_t value) const { return {Kind::kUnsigned, 0, value}; }
  Value huge() const { return {Kind::kHuge}; }
  Value real(double value) const { return {Kind::kReal, 0, __builtin_bit_cast(uint64_t, value)}; }
  Value opaque() const { return {Kind::kOpaque}; }
  Value empty_list() const { return {Kind::kEmptyList}; }
  Value empty_dict() const { return {Kind::kEmptyDict}; }
  Value text(std::string_view text) { return kept_text(texts_.intern(text)); }
  /// A text that is followed by anything.
  Value loose_text(std::string_view text) { return kept_text(texts_.intern_long(text)); }

  Value tuple(const Value* items, size_t count, uint64_t at);
  bool append(Value* list, const Value* items, size_t count, uint64_t at);
  bool set_items(Value* dict, const Value* items, size_t count, uint64_t at);

  bool learn_record(const Value& dict, const Value* items, size_t count);
  bool set_record(Value* dict, const Value* values, uint64_t at);

  static uint32_t pack(const Value& value) { return torch_snapshot::pack(value); }
  static Value recall(uint32_t entry) { return unpack(entry & ~kReferredBit); }
  static bool is_referable(uint32_t entry) {
    const Kind kind = packed_kind(entry);
    return kind == Kind::kEmptyList || kind == Kind::kEmptyDict || kind == Kind::kStack;
  }
  static bool is_settled(const Value& value) { return value.kind == Kind::kStack; }
  static bool settles_list(uint32_t entry) { return packed_kind(entry) == Kind::kFrame; }
  static bool is_list(const Value& value) {
    return value.kind == Kind::kEmptyList || value.kind == Kind::kTrace ||
           value.kind == Kind::kSegments || value.kind == Kind::kBlocks ||
           value.kind == Kind::kAnnotations || value.kind == Kind::kOpaque ||
           value.kind == Kind::kWrong;
  }
  /// False where memory of this size would go beyond the limit.
  bool grow(uint64_t bytes);
  const std::string& failure() const { return failure_; }

  const Texts& texts() const { return texts_; }
  Parts& parts() { return parts_; }
  /// What is wrong with a value of Kind::kWrong.
  const Error& complaint(const Value& value) const { return complaints_[value.bits]; }

 private:
  Value kept_text(uint32_t id);
  Value wrong(std::string what, uint64_t at);
  /// Takes back what waits for a list that will not come.
  void drop(const Value* items, size_t count);
  bool account();

  // builder_lists.cc
  Value start_list(const Value* items, size_t count, uint64_t at);
  Value stack_of(uint32_t inner, const Value* items, size_t count, uint64_t at);
  Value pair_of(int64_t first, int64_t second);
  bool add_events(TraceRecord* trace, const Value* items, size_t count);
  bool add_to_list(Value* list, const Value* items, size_t count);
  Value add_traces(uint64_t list, const Value* items, size_t count, uint64_t at);

  // builder_records.cc
  Value frame(const Value* items, size_t count, uint64_t at);
  Value event(const Value* items, size_t count, uint64_t at);
  const char* set_field(EventRecord* record, const Value& key, const Value& value);
  Value complete_event(uint64_t at);
  Value block(const Value* items, size_t count, uint64_t at);
  const char* set_field(BlockRecord* record, const Value& key, const Value& value);
  Value complete_block(BlockRecord* record);
  Value history(const Value* items, size_t count, uint64_t at);
  template <class Record>
  std::optional<Value> set_known_fields(const char* of, Record* record, const Value* values,
                                        uint64_t at);
  Value annotation(const Value* items, size_t count, uint64_t at);
  Value numbers(const Value* items, size_t count);
  // builder_segments.cc
  Value segment(const Value* items, size_t count, uint64_t at);
  Value settings(const Value* items, size_t count, uint64_t at);
  Value snapshot(const Value* items, size_t count, uint64_t at);

  uint32_t string_of(uint64_t text);
  /// Notes a key that nobody knows, so that the reader can say what it passed over.
  void unread_key(const Value& key) {
    if (key.bits >= kKeyCount) [[unlikely]]
      note_unread_key(static_cast<uint32_t>(key.bits));
  }
  void note_unread_key(uint32_t text);
  // One field each: nothing on success, else what was expected.
  const char* to_size(const Value& value, uint64_t* out) const {
    const bool fits = value.kind == Kind::kUnsigned ||
                      (value.kind == Kind::kInteger && static_cast<int64_t>(value.bits) >= 0);
    if (!fits) return "a number of bytes";
    *out = value.bits;
    return nullptr;
  }
  const char* to_address(const Value& value, uint64_t* out) const {
    // PyTorch's pickler in C++ has signed numbers alone: the bits are those of the address.
    if (value.kind != Kind::kInteger && value.kind != Kind::kUnsigned) return "an address";
    *out = value.bits;
    return nullptr;
  }
  const char* to_signed(const Value& value, int64_t* out) const {
    if (value.kind != Kind::kInteger && value.kind != Kind::kUnsigned) return "a number";
    *out = static_cast<int64_t>(value.bits);
    return nullptr;
  }
  const char* to_stack(const Value& value, uint32_t* out) const {
    if (value.kind == Kind::kStack) {
      *out = static_cast<uint32_t>(value.bits);
      return nullptr;
    }
    return value.kind == Kind::kEmptyList || value.kind == Kind::kNone ? nullptr
                                                                       : "a list of frames";
  }
  const char* to_pair(const Value& value, uint32_t* out) const;
  const char* to_bool(const Value& value, bool* out) const;
  /// Calls `set(key, value)` for what a dictionary has under texts; it answers null, or what the
  /// value should have been. Then that is what comes of the dictionary.
  template <class Set>
  std::optional<Value> set_fields(const char* of, const Value* items, size_t count, uint64_t at,
                                  const Set& set) {
    for (size_t i = 0; i < count; i += 2) {
      if (items[i].kind != Kind::kText) continue;
      if (const char* expected = set(items[i], items[i + 1]))
        return wrong_field(of, items[i], items[i + 1], expected, at);
    }
    return std::nullopt;
  }
  /// "an event's 'size' is …": or the complaint that the value itself carries.
  Value wrong_field(const char* of, const Value& key, const Value& value, const char* expected,
                    uint64_t at);

  uint64_t limit_bytes_;
  uint64_t used_bytes_ = 0;
  Texts texts_;
  Parts parts_;
  Stacks stacks_;
  uint64_t texts_accounted_ = 0;
  uint64_t tables_accounted_ = 0;
  std::vector<Value> record_keys_;  // of the event or block that was learnt, in order
  Kind record_kind_ = Kind::kUnset;
  std::vector<uint32_t> frames_;   // of the list at hand
  std::vector<uint32_t> strings_;  // Texts id: StringTable id + 1
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint32_t> pair_ids_;
  std::vector<Error> complaints_;
  std::string failure_;
};

}  // namespace gpumemprof::torch_snapshot
