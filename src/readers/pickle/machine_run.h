// The loop over opcodes of Machine; included by machine.h alone.
#pragma once

#include "readers/pickle/machine.h"

namespace gpumemprof::pickle {

inline constexpr const char* kCutOff = "is cut off or damaged, copy it again: ";

/// A text or bytes of any length. `*at` is behind the length; afterwards behind the text.
template <class Builder>
Status Machine<Builder>::text(uint64_t size, bool is_text, const uint8_t** at, uint64_t opcode_at) {
  const uint64_t begin = window_.offset_of(*at);
  if (begin > window_.size_bytes() || size > window_.size_bytes() - begin) {
    return fail_at(opcode_at,
                   kCutOff + ("a text of " + std::to_string(size)) + " bytes goes beyond the end of the file");
  }
  bool pushed;
  if (!is_text || size > limits_.text_bytes) {
    pushed = push(builder_.opaque());
    if (auto moved = window_.seek(begin + size, at); !moved) return moved;
  } else {
    // The window is larger than any text that is kept.
    if (static_cast<uint64_t>(window_.end() - *at) < size) {
      if (auto moved = window_.refill(at); !moved) return moved;
      if (static_cast<uint64_t>(window_.end() - *at) < size)
        return fail_at(opcode_at, kCutOff + std::string("the file ends inside a text"));
    }
    pushed = push(builder_.text({reinterpret_cast<const char*>(*at), size}));
    *at += size;
  }
  return pushed ? Status{} : error_at(opcode_at);
}

template <class Builder>
Result<typename Builder::Value> Machine<Builder>::run(const Progress& on_progress) {
  const uint8_t* at = window_.begin();
  if (auto filled = window_.refill(&at); !filled) return std::unexpected(filled.error());
  const uint8_t* refill_at = window_.refill_at();
  Value* items;
  size_t count;
  for (;;) {
    if (at >= refill_at) [[unlikely]] {
      if (at >= window_.end() && window_.at_end()) {
        return fail_at(window_.size_bytes(), kCutOff + std::string("the file ends inside the pickle"));
      }
      if (auto filled = window_.refill(&at); !filled) return std::unexpected(filled.error());
      refill_at = window_.refill_at();
      if (on_progress)
        on_progress(static_cast<double>(window_.offset_of(at)) /
                    static_cast<double>(window_.size_bytes() + 1));
      if (at >= refill_at) continue;  // the file became shorter
    }
    const uint8_t* opcode = at++;
    const auto offset = [&] { return window_.offset_of(opcode); };
    bool ok = true;
    switch (*opcode) {
      case kBinGet:
        ok = recall(*at);
        at += 1;
        break;
      case kLongBinGet:
        ok = recall(load<uint32_t>(at));
        at += 4;
        break;
      case kMemoize:
        ok = remember();
        break;
      case kBinPut:
        ok = remember_as(*at);
        at += 1;
        break;
      case kLongBinPut:
        ok = remember_as(load<uint32_t>(at));
        at += 4;
        break;
      case kShortBinUnicode: {
        const size_t size = *at;
        if (at + 1 + size <= window_.end()) {
          ok = push(builder_.text({reinterpret_cast<const char*>(at + 1), size}));
        } else {
          ok = complain(kCutOff + std::string("the file ends inside a text"));
        }
        at += 1 + size;
        break;
      }
      case kBinInt:
        ok = push(builder_.integer(load<int32_t>(at)));
        at += 4;
        break;
      case kBinInt1:
        ok = push(builder_.integer(*at));
        at += 1;
        break;
      case kBinInt2:
        ok = push(builder_.integer(load<uint16_t>(at)));
        at += 2;
        break;
      case kLong1: {
        const size_t size = *at;
        if (size <= 8) [[likely]] {
          ok = push(builder_.integer(short_integer(at + 1, size)));
        } else {
          ok = push(number({at + 1, size}));
        }
        at += 1 + size;
        break;
      }
      case kBinFloat:
        ok = push(builder_.real(load_big_endian_double(at)));
        at += 8;
        break;
      case kNone:
        ok = push(builder_.none());
        break;
      case kNewTrue:
      case kNewFalse:
        ok = push(builder_.boolean(*opcode == kNewTrue));
        break;
      case kMark:
        ok = set_mark();
        break;
      case kEmptyDict:
        ok = (depth() < kEagerItems || take_early(offset())) && take_dict(&at, refill_at, &opcode);
        break;
      case kEmptyList:
        if (!take_known_list(&at, &ok)) ok = push(builder_.empty_list());
        break;
      case kSetItems:
        ok = close_mark(&items, &count) && set_items(items, count, offset());
        break;
      case kAppends:
        ok = close_mark(&items, &count, true) && append(items, count, offset());
        if (ok) learn_list(opcode);
        break;
      case kAppend:
        ok = depth() >= 2 || complain("an item without a list");
        if (ok) --top_, ok = append(top_, 1, offset());
        break;
      case kSetItem:
        ok = depth() >= 3 || complain("an item without a dictionary");
        if (ok) top_ -= 2, ok = set_items(top_, 2, offset());
        break;
      case kEmptyTuple:
        ok = tuple_of(0, offset());
        break;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        ok = tuple_of(*opcode - kTuple1 + 1u, offset());
        break;
      case kTuple:
        ok = close_mark(&items, &count) && push(builder_.tuple(items, count, offset()));
        break;
      case kList:
        ok = close_mark(&items, &count);
        if (ok) {
          Value list = builder_.empty_list();
          ok = builder_.append(&list, items, count, offset()) || builder_failed();
          ok = ok && push(list);
        }
        break;
      case kDict:
        ok = close_mark(&items, &count) && (count % 2 == 0 || complain("a key without a value"));
        if (ok) {
          Value dict = builder_.empty_dict();
          ok = builder_.set_items(&dict, items, count, offset()) || builder_failed();
          ok = ok && push(dict);
        }
        break;
      case kEmptySet:
        ok = push(builder_.opaque());
        break;
      case kAddItems:
        ok = close_mark(&items, &count) && (depth() >= 1 || complain("items without a set"));
        if (ok) builder_.tuple(items, count, offset());
        break;
      case kFrozenSet:
        ok = close_mark(&items, &count);
        if (ok) builder_.tuple(items, count, offset()), ok = push(builder_.opaque());
        break;
      case kBinUnicode:
      case kBinBytes:
      case kLong4: {
        const uint32_t size = load<uint32_t>(at);
        at += 4;
        if (*opcode == kLong4 && size <= 255) {
          ok = push(number({at, size}));
          at += size;
          break;
        }
        const uint64_t begin = offset();
        auto done = text(size, *opcode == kBinUnicode, &at, begin);
        if (!done) return std::unexpected(done.error());
        refill_at = window_.refill_at();
        break;
      }
      case kShortBinBytes: {
        const uint64_t begin = offset();
        const size_t size = *at++;
        auto done = text(size, false, &at, begin);
        if (!done) return std::unexpected(done.error());
        refill_at = window_.refill_at();
        break;
      }
      case kBinUnicode8:
      case kBinBytes8:
      case kByteArray8: {
        const uint64_t begin = offset();
        const uint64_t size = load<uint64_t>(at);
        at += 8;
        auto done = text(size, *opcode == kBinUnicode8, &at, begin);
        if (!done) return std::unexpected(done.error());
        refill_at = window_.refill_at();
        break;
      }
      case kFrame: {
        const uint64_t size = load<uint64_t>(at);
        at += 8;
        const uint64_t behind = window_.offset_of(at);
        ok = (behind <= window_.size_bytes() && size <= window_.size_bytes() - behind) ||
             complain(kCutOff + ("a frame of " + std::to_string(size)) +
                      " bytes goes beyond the end of the file");
        break;
      }
      case kProto:
        ok = (*at >= 2 && *at <= 5) || complain("protocol " + std::to_string(*at) +
                                                " of pickle is not supported: only 2 to 5 are");
        at += 1;
        break;
      case kStop:
        if (depth() != 1 || !marks_.empty())
          return fail_at(offset(), "the pickle ends with incomplete containers");
        return top_[-1];
      default:
        ok = complain(why_refused(*opcode));
    }
    if (!ok) [[unlikely]] {
      // What was decoded from behind the end of the file is not what is wrong.
      if (at > window_.end())
        return fail_at(window_.size_bytes(), kCutOff + std::string("the file ends inside the pickle"));
      return error_at(offset());
    }
  }
}

}  // namespace gpumemprof::pickle
