// The dictionaries that most of a file is made of, taken in a loop of their own; included by
// machine.h alone.
#pragma once

#include "readers/pickle/machine.h"

namespace gpumemprof::pickle {

/// A value that stands for itself: a reference, a number, a short text, a list that is known.
/// False where something else begins at `*at`, which is left for the machine.
template <class Builder>
[[gnu::always_inline]] inline bool Machine<Builder>::plain_value(const uint8_t** at, Value* value) {
  const uint8_t* p = *at;
  uint32_t index;
  switch (*p++) {
    case kBinGet:
      index = *p;
      p += 1;
      break;
    case kLongBinGet:
      index = load<uint32_t>(p);
      p += 4;
      break;
    case kBinInt1:
      *value = builder_.integer(*p);
      *at = p + 1;
      return true;
    case kBinInt2:
      *value = builder_.integer(load<uint16_t>(p));
      *at = p + 2;
      return true;
    case kBinInt:
      *value = builder_.integer(load<int32_t>(p));
      *at = p + 4;
      return true;
    case kLong1: {
      const size_t size = *p;
      if (size > 8) return false;
      *value = builder_.integer(short_integer(p + 1, size));
      *at = p + 1 + size;
      return true;
    }
    case kShortBinUnicode: {
      const size_t size = *p;
      if (p + 1 + size > window_.end()) return false;
      *value = builder_.text({reinterpret_cast<const char*>(p + 1), size});
      *at = p + 1 + size;
      if (**at == kMemoize && can_remember()) note(value), ++*at;
      return true;
    }
    case kEmptyList: {
      const uint8_t* behind;
      if (!can_remember()) return false;
      if (const Value* known = known_list(p, &behind)) {
        *value = *known;
      } else if (!new_list(p, value, &behind)) {
        return false;
      }
      note(value);
      *at = behind;
      return true;
    }
    default:
      return false;
  }
  const uint32_t entry = memo_.get(index);
  if (entry == 0) return false;
  *value = builder_.recall(entry);
  if (Builder::is_referable(entry)) {
    value->memo = kRecalled;
    memo_.set(index, entry | Builder::kReferred);
  }
  *at = p;
  return true;
}

/// Behind an EMPTY_LIST: one of a few references that settle it. False where another begins there,
/// or where it fails, as it then will again.
template <class Builder>
bool Machine<Builder>::new_list(const uint8_t* at, Value* value, const uint8_t** behind) {
  constexpr auto kMostBytes = static_cast<ptrdiff_t>(3 + 5 * kFewItems);
  if (at[0] != kMemoize || at[1] != kMark || window_.end() - at < kMostBytes) return false;
  const uint8_t* p = at + 2;
  size_t count = 0;
  for (; *p == kBinGet || *p == kLongBinGet; ++count) {
    const bool is_long = *p == kLongBinGet;
    const uint32_t entry = memo_.get(is_long ? load<uint32_t>(p + 1) : p[1]);
    if (count == kFewItems || !Builder::settles_list(entry)) return false;
    few_items_[count] = builder_.recall(entry);
    p += is_long ? 5 : 2;
  }
  if (*p != kAppends || count == 0) return false;
  *value = builder_.empty_list();
  if (!builder_.append(value, few_items_.data(), count, window_.offset_of(p))) return false;
  learn_list(at + 2, p, *value);
  *behind = p + 1;
  return true;
}

/// Behind an EMPTY_DICT. Nearly every dictionary is numbered, has references for keys and plain
/// values, and ends with one SETITEMS: such a one is made at once. Where anything else comes the
/// stack, the marks and the memo are as the opcodes before it leave them, and the machine goes on
/// there. `*opcode` is moved to the opcode that a failure is about.
template <class Builder>
bool Machine<Builder>::take_dict(const uint8_t** at, const uint8_t* refill_at,
                                 const uint8_t** opcode) {
  constexpr ptrdiff_t kMostPairs = DictShape<Value>::kMostPairs;
  const uint8_t* p = *at;
  if (p[0] != kMemoize || p[1] != kMark || !can_remember() || end_ - top_ <= 3 * kMostPairs + 1 ||
      marks_.size() >= limits_.open_marks) {
    return push(builder_.empty_dict());
  }
  p += 2;
  Value* const dict = top_;
  *dict = builder_.empty_dict();
  note(dict);
  // First by the keys of the last record; then, where they differ, key by key.
  Value* const values = dict + 1 + 2 * kMostPairs;
  const auto* key = shape_.keys.data();
  const auto* const last_key = key + shape_.count;
  Value* value = values;
  bool key_without_value = false;
  for (; key != last_key && p < refill_at; ++key, ++value) {
    if (((load<uint64_t>(p) ^ key->bytes) & key->mask) != 0) break;
    p += key->size;
    if (!plain_value(&p, value)) {
      key_without_value = true;
      break;
    }
  }
  const auto count = static_cast<size_t>(value - values);
  Value* const items = dict + 1;
  if (count == shape_.count && count != 0 && *p == kSetItems && p < refill_at) {
    *opcode = p;
    *at = p + 1;
    top_ = items;
    const uint32_t memo = dict->memo;
    if (!may_change(*dict)) return false;
    if (!builder_.set_record(dict, values, window_.offset_of(p))) return builder_failed();
    note_change(dict, memo);
    return true;
  }
  Value* top = items;
  for (size_t i = 0; i < count; ++i) {
    *top++ = shape_.keys[i].value;
    *top++ = values[i];
  }
  if (key_without_value) *top++ = shape_.keys[count].value;
  return take_pairs(at, p, refill_at, top, key_without_value, opcode);
}

/// The rest of a dictionary that take_dict() has begun, up to `p`.
template <class Builder>
bool Machine<Builder>::take_pairs(const uint8_t** at, const uint8_t* p, const uint8_t* refill_at,
                                  Value* top, bool is_odd, const uint8_t** opcode) {
  Value* const items = top_ + 1;
  constexpr ptrdiff_t kMostValues = 2 * DictShape<Value>::kMostPairs;
  DictShape<Value> shape;
  shape.count = top == items ? 0 : DictShape<Value>::kMostPairs;  // its beginning is not at hand
  while (!is_odd && p < refill_at && top - items < kMostValues) {
    if (*p == kSetItems && top != items) {
      *opcode = p;
      *at = p + 1;
      top_ = items;
      const auto count = static_cast<size_t>(top - items);
      if (!set_items(items, count, window_.offset_of(p))) return false;
      if (shape.count == count / 2 && builder_.learn_record(items[-1], items, count))
        shape_ = shape;
      return true;
    }
    // Between a key and its value no file is asked for: the margin of the window is longer.
    const uint8_t* const key = p;
    if ((*p != kBinGet && *p != kLongBinGet) || !plain_value(&p, top)) break;
    shape.add(key, p, *top);
    ++top;
    if (!plain_value(&p, top)) break;
    ++top;
  }
  marks_.push_back({static_cast<uint32_t>(floor_ - stack_.get()), false});
  floor_ = items;
  top_ = top;
  *at = p;
  return true;
}

}  // namespace gpumemprof::pickle
