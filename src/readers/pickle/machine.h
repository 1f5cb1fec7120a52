// Reads a pickle of plain data: a machine with a stack, marks and a memo, as Python's, but without
// any opcode that could import or call something. What values are, the builder decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "readers/pickle/dict_shape.h"
#include "readers/pickle/integer.h"
#include "readers/pickle/known_lists.h"
#include "readers/pickle/memo.h"
#include "readers/pickle/opcodes.h"
#include "readers/pickle/window.h"

namespace gpumemprof::pickle {

struct Limits {
  uint32_t stack_values = 1 << 20;  ///< values that wait for the list or dictionary around them
  uint32_t open_marks = 1000;       ///< containers inside containers
  uint64_t text_bytes = 64 << 10;   ///< a longer text is passed over: no name is that long
};

/// `Builder` makes values of what the machine meets:
///   Value with members kind, memo (uint32_t) and bits; copied freely
///   scalars:      none() boolean(bool) integer(int64_t) unsigned_integer(uint64_t) huge()
///                 real(double) text(string_view, followed by 8 readable bytes) opaque()
///   containers:   empty_list() empty_dict() tuple(items, n, offset)
///   changes:      append(list, items, n, offset) and set_items(dict, items, n, offset) change
///   their
///                 first argument; false is a failure, which builder.failure() explains
///   records:      learn_record(dict, items, n) after set_items(): true where `dict` is one of many
///                 with the same keys. set_record(dict, values, offset) then makes another one
///                 with the keys that were learnt last, of their values in the same order
///   memo entries: pack(value) to 32 bits, not 0; recall(entry) back
///   is_settled(value): a list that the same references always give, as they never change
///   settles_list(entry): references to such entries alone always give such a list
///   is_referable(entry): a container, which must not change once somebody refers to it
///   grow(bytes):  accounts for memory; false is a failure
/// Lists are handed over in pieces, in order, so a list is never held as a whole.
template <class Builder>
class Machine {
 public:
  using Value = typename Builder::Value;
  using Progress = std::function<void(double)>;

  Machine(Window& window, Builder& builder, const Limits& limits)
      : window_(window), builder_(builder), limits_(limits) {
    reserve(1 << 12);
  }

  /// Reads up to the STOP opcode. Errors: kBadInput with the offset of the opcode that is wrong.
  Result<Value> run(const Progress& on_progress);

 private:
  // A recalled container: whoever changes it would change what others refer to.
  static constexpr uint32_t kRecalled = UINT32_MAX;
  // Items that wait for a list that could take them already.
  static constexpr ptrdiff_t kEagerItems = 2048;
  static constexpr size_t kFewItems = 32;  // of a list that is read at once

  struct Mark {
    uint32_t floor;   // values on the stack when it was set
    bool taken_from;  // a list has taken items early, so nothing but a list may close it
  };

  void reserve(size_t capacity) {
    auto grown = std::make_unique_for_overwrite<Value[]>(capacity);
    const size_t used = stack_ ? static_cast<size_t>(top_ - stack_.get()) : 0;
    const size_t floor = stack_ ? static_cast<size_t>(floor_ - stack_.get()) : 0;
    if (used != 0) std::memcpy(static_cast<void*>(grown.get()), stack_.get(), used * sizeof(Value));
    stack_ = std::move(grown);
    top_ = stack_.get() + used;
    floor_ = stack_.get() + floor;
    end_ = stack_.get() + capacity;
  }
  // By value and inlined: a value that is stored in pieces and loaded as a whole is waited for.
  [[gnu::always_inline]] bool push(Value value) {
    if (top_ == end_ && !grow_stack()) [[unlikely]]
      return false;
    top_->kind = value.kind;
    top_->memo = value.memo;
    top_->bits = value.bits;
    ++top_;
    return true;
  }
  bool grow_stack() {
    const size_t capacity = static_cast<size_t>(end_ - stack_.get());
    if (capacity >= limits_.stack_values) return complain("too many values outside of a container");
    reserve(capacity * 2);
    return true;
  }
  bool complain(std::string what) {
    error_ = std::move(what);
    return false;
  }
  bool builder_failed() { return complain(builder_.failure()); }
  ptrdiff_t depth() const { return top_ - floor_; }

  bool set_mark() {
    if (marks_.size() >= limits_.open_marks)
      return complain("nested more than " + std::to_string(limits_.open_marks) + " levels deep");
    marks_.push_back({static_cast<uint32_t>(floor_ - stack_.get()), false});
    floor_ = top_;
    return true;
  }
  /// Ends the topmost mark: its items are [*items, old top), which are taken off the stack.
  bool close_mark(Value** items, size_t* count, bool by_list = false) {
    if (marks_.empty()) return complain("the end of a container without a beginning");
    if (marks_.back().taken_from && !by_list) return complain("too many values in a container");
    *items = floor_;
    *count = static_cast<size_t>(top_ - floor_);
    top_ = floor_;
    floor_ = stack_.get() + marks_.back().floor;
    marks_.pop_back();
    return true;
  }
  /// The container below the items, after a change that must show in the memo as well.
  bool may_change(const Value& container) {
    if (container.memo == 0) return true;
    if (container.memo == kRecalled || (memo_.get(container.memo - 1) & Builder::kReferred))
      return complain("a shared container is changed, or contains itself");
    return true;
  }
  /// After a change: the builder may have made another value of it.
  void note_change(Value* container, uint32_t memo) {
    container->memo = memo;
    if (memo != 0) memo_.set(memo - 1, builder_.pack(*container));
  }
  bool append(Value* items, size_t count, uint64_t at) {
    if (depth() < 1) return complain("items without a list");
    Value& list = top_[-1];
    const uint32_t memo = list.memo;
    if (!may_change(list)) return false;
    if (!builder_.append(&list, items, count, at)) return builder_failed();
    note_change(&list, memo);
    return true;
  }
  bool set_items(Value* items, size_t count, uint64_t at) {
    if (depth() < 1) return complain("items without a dictionary");
    if (count % 2 != 0) return complain("a key without a value");
    Value& dict = top_[-1];
    const uint32_t memo = dict.memo;
    if (!may_change(dict)) return false;
    if (!builder_.set_items(&dict, items, count, at)) return builder_failed();
    note_change(&dict, memo);
    return true;
  }
  /// PyTorch's own pickler ends a list of millions of events with a single opcode: they are handed
  /// over before it. Called where the next one begins, when all of them are complete.
  bool take_early(uint64_t at) {
    if (marks_.empty() || floor_ == stack_.get() + marks_.back().floor) return true;
    if (!builder_.is_list(floor_[-1])) return true;
    Value* const items = floor_;
    const size_t count = static_cast<size_t>(top_ - floor_);
    Value& list = floor_[-1];
    const uint32_t memo = list.memo;
    if (!may_change(list)) return false;
    if (!builder_.append(&list, items, count, at)) return builder_failed();
    note_change(&list, memo);
    marks_.back().taken_from = true;
    top_ = floor_;
    return true;
  }
  bool remember() {
    if (depth() < 1) return complain("nothing to remember");
    // Once a value: else a file of one opcode repeated would cost four times its size.
    if (top_[-1].memo != 0) return complain("a value is remembered twice");
    if (memo_.size() >= Memo::kMostEntries - 1) return complain("too many values to remember");
    if (memo_.is_full() && !builder_.grow(Memo::kChunk * sizeof(uint32_t))) return builder_failed();
    memo_.add(builder_.pack(top_[-1]));
    top_[-1].memo = static_cast<uint32_t>(memo_.size());
    return true;
  }
  bool remember_as(uint64_t index) {
    if (index != memo_.size()) return complain("memo entries are not numbered one by one");
    return remember();
  }
  [[gnu::always_inline]] bool recall(uint32_t index) {
    const uint32_t entry = memo_.get(index);
    if (entry == 0 || Builder::is_referable(entry)) [[unlikely]]
      return recall_container(index, entry);
    return push(builder_.recall(entry));
  }
  [[gnu::noinline]] bool recall_container(uint32_t index, uint32_t entry) {
    if (entry == 0)
      return complain("refers to entry " + std::to_string(index) + ", which is not there yet");
    Value value = builder_.recall(entry);
    value.memo = kRecalled;
    memo_.set(index, entry | Builder::kReferred);
    return push(value);
  }
  /// True where note() needs neither memory nor a complaint.
  bool can_remember() const { return !memo_.is_full() && memo_.size() < Memo::kMostEntries - 1; }
  /// remember(), for a value that is not on the stack yet.
  [[gnu::always_inline]] void note(Value* value) {
    memo_.add_to_chunk(builder_.pack(*value));
    value->memo = static_cast<uint32_t>(memo_.size());
  }
  bool plain_value(const uint8_t** at, Value* value);
  bool take_dict(const uint8_t** at, const uint8_t* refill_at, const uint8_t** opcode);
  bool take_pairs(const uint8_t** at, const uint8_t* p, const uint8_t* refill_at, Value* top,
                  bool is_odd, const uint8_t** opcode);
  /// Behind an EMPTY_LIST: the whole list where it is the one that was to be expected, and where
  /// it ends. Null where it is another.
  const Value* known_list(const uint8_t* at, const uint8_t** behind) {
    if (at[0] != kMemoize || at[1] != kMark) return nullptr;
    const uint8_t* const items = at + 2;
    const auto left = static_cast<size_t>(std::max<ptrdiff_t>(0, window_.end() - items));
    for (const bool second : {false, true}) {
      const auto* known = known_lists_.guess(second);
      if (!known || left < known->bytes.size() ||
          std::memcmp(items, known->bytes.data(), known->bytes.size()) != 0) {
        continue;
      }
      known_lists_.confirm(*known);
      *behind = items + known->bytes.size();
      return &known->value;
    }
    return nullptr;
  }
  [[gnu::always_inline]] bool take_known_list(const uint8_t** at, bool* ok) {
    const uint8_t* behind;
    const Value* known = known_list(*at, &behind);
    if (!known) {
      if ((*at)[0] == kMemoize && (*at)[1] == kMark) list_begins_ = window_.offset_of(*at + 2);
      return false;
    }
    *ok = push(*known) && remember();
    *at = behind;
    return true;
  }
  /// At the end of a list: keeps it in mind if it holds nothing but references.
  void learn_list(const uint8_t* appends) {
    const uint64_t end = window_.offset_of(appends);
    const uint64_t base = window_.offset_of(window_.begin());
    if (list_begins_ < base || list_begins_ >= end) return;
    const uint8_t* const items = window_.begin() + (list_begins_ - base);
    if (!builder_.is_settled(top_[-1]) || !known_lists_.only_references(items, appends)) return;
    Value value = top_[-1];
    value.memo = 0;
    learn_list(items, appends, value);
  }
  void learn_list(const uint8_t* items, const uint8_t* appends, const Value& value) {
    known_lists_.learn(
        {reinterpret_cast<const char*>(items), static_cast<size_t>(appends - items) + 1}, value);
  }
  bool new_list(const uint8_t* at, Value* value, const uint8_t** behind);
  bool tuple_of(size_t count, uint64_t at) {
    if (depth() < static_cast<ptrdiff_t>(count)) return complain("too few values for a tuple");
    top_ -= count;
    return push(builder_.tuple(top_, count, at));
  }
  Value number(std::span<const uint8_t> bytes) {
    const Integer number = any_integer(bytes);
    if (number.fit == Integer::kNeither) return builder_.huge();
    if (number.fit == Integer::kUnsigned) return builder_.unsigned_integer(number.bits);
    return builder_.integer(static_cast<int64_t>(number.bits));
  }
  Status text(uint64_t size, bool is_text, const uint8_t** at, uint64_t opcode_at);

  std::unexpected<Error> error_at(uint64_t offset) { return fail_at(offset, std::move(error_)); }

  Window& window_;
  Builder& builder_;
  Limits limits_;
  Memo memo_;
  std::unique_ptr<Value[]> stack_;
  Value* top_ = nullptr;    // behind the topmost value
  Value* floor_ = nullptr;  // the first value above the topmost mark
  Value* end_ = nullptr;
  std::vector<Mark> marks_;
  KnownLists<Value> known_lists_;
  std::array<Value, kFewItems> few_items_;
  DictShape<Value> shape_;             // of the last record
  uint64_t list_begins_ = UINT64_MAX;  // offset of the first item of the latest unknown list
  std::string error_;
};

}  // namespace gpumemprof::pickle

#include "readers/pickle/machine_dict.h"
#include "readers/pickle/machine_run.h"
