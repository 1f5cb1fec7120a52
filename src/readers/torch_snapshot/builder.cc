#include "readers/torch_snapshot/builder.h"

#include <algorithm>

namespace gpumemprof::torch_snapshot {
namespace {

constexpr size_t kMostComplaints = 64;  // of the others nobody will ask
constexpr size_t kMostUnreadKeys = 16;
constexpr uint64_t kBytesPerNode = 48;    // StackTable: a node, its hash entry, growing them
constexpr uint64_t kBytesPerString = 60;  // StringTable: the same, and its view
constexpr uint64_t kBytesPerComplaint = 200;

constexpr uint64_t bit_of(Kind kind) { return uint64_t{1} << static_cast<int>(kind); }
constexpr uint64_t kWaiting = bit_of(Kind::kEvent) | bit_of(Kind::kBlock) | bit_of(Kind::kSegment) |
                              bit_of(Kind::kAnnotation);

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "a text";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a truth value";
    case Kind::kInteger:
    case Kind::kUnsigned:
    case Kind::kHuge:
      return "a number that is out of range";
    case Kind::kReal:
      return "a fraction";
    case Kind::kGone:
      return "a reference to what was read before";
    case Kind::kOpaque:  // of the texts, those that the readers' kept-text limits leave out
      return "an object or a text of more than 64 KiB";
    default:
      return "something else";
  }
}

template <class T>
void shrink(std::vector<T>* waiting, uint64_t size) {
  if (size < waiting->size()) waiting->resize(size);
}

}  // namespace

Builder::Builder(uint64_t limit_bytes) : limit_bytes_(limit_bytes), stacks_(parts_.tables.stacks) {
  pair_ids_.emplace(parts_.pairs[0], 0);
  texts_accounted_ = texts_.bytes();
}

bool Builder::grow(uint64_t bytes) {
  used_bytes_ += bytes;
  if (used_bytes_ <= limit_bytes_) return true;
  failure_ = "its contents take more than " + std::to_string(limit_bytes_ >> 20) +
             " MiB of memory, far more than any snapshot of its size";
  return false;
}

bool Builder::account() {
  const Tables& tables = parts_.tables;
  const uint64_t table_bytes =
      (uint64_t{tables.stacks.stack_count()} + tables.stacks.frame_count()) * kBytesPerNode +
      uint64_t{tables.strings.size()} * kBytesPerString;
  const uint64_t new_bytes = texts_.bytes() - texts_accounted_ + table_bytes - tables_accounted_;
  texts_accounted_ = texts_.bytes();
  tables_accounted_ = table_bytes;
  return new_bytes == 0 || grow(new_bytes);
}

Value Builder::kept_text(uint32_t id) {
  return id <= kMostPayload ? Value{Kind::kText, 0, id} : opaque();
}

Value Builder::wrong(std::string what, uint64_t at) {
  if (complaints_.size() < kMostComplaints) {
    grow(kBytesPerComplaint);
    complaints_.push_back({ErrorCode::kBadInput, std::move(what), at});
  }
  return {Kind::kWrong, 0, complaints_.size() - 1};
}

Value Builder::wrong_field(const char* of, const Value& key, const Value& value,
                           const char* expected, uint64_t at) {
  if (value.kind == Kind::kWrong) return value;
  return wrong(std::string(of) + "'s '" + std::string(texts_.get(static_cast<uint32_t>(key.bits))) +
                   "' is " + name_of(value.kind) + ", not " + expected,
               at);
}

void Builder::drop(const Value* items, size_t count) {
  // What waits was made in the order of the stack, so all that came after goes as well.
  for (size_t i = 0; i < count; ++i) {
    const Value& item = items[i];
    if (item.kind == Kind::kEvent) shrink(&parts_.events, item.bits);
    if (item.kind == Kind::kBlock) shrink(&parts_.blocks, item.bits);
    if (item.kind == Kind::kSegment) shrink(&parts_.segments, item.bits);
    if (item.kind == Kind::kAnnotation) shrink(&parts_.annotations, item.bits);
  }
}

bool Builder::set_items(Value* dict, const Value* items, size_t count, uint64_t at) {
  if (count == 0) return true;
  uint64_t keys = 0, kinds = 0;
  for (size_t i = 0; i < count; i += 2) {
    if (items[i].kind == Kind::kText && items[i].bits < kKeyCount)
      keys |= uint64_t{1} << items[i].bits;
    kinds |= bit_of(items[i].kind) | bit_of(items[i + 1].kind);
  }
  if (kinds & kWaiting) drop(items, count);
  const auto has = [&](uint64_t any) { return (keys & any) != 0; };
  if (dict->kind != Kind::kEmptyDict) {
    // Writers hand dictionaries over in pieces of a thousand keys: none that we need is that large.
    if (dict->kind != Kind::kOpaque && dict->kind != Kind::kWrong)
      *dict = wrong("a dictionary continues after its end", at);
  } else if (has(bit(kKeyAction)) && has(bit(kKeyAddr) | bit(kKeyDeviceFree) | bit(kKeySize))) {
    *dict = event(items, count, at);
    parts_.seen.event |= keys;
  } else if (has(bit(kKeyFilename)) && has(bit(kKeyName))) {
    *dict = frame(items, count, at);
  } else if (has(bit(kKeyTotalSize)) && has(bit(kKeyBlocks))) {
    *dict = segment(items, count, at);
    parts_.seen.segment |= keys;
  } else if (has(bit(kKeyState)) && has(bit(kKeySize))) {
    *dict = block(items, count, at);
    parts_.seen.block |= keys;
  } else if (has(bit(kKeySegments) | bit(kKeyDeviceTraces))) {
    *dict = snapshot(items, count, at);
  } else if (has(bit(kKeyRealSize))) {
    *dict = history(items, count, at);
  } else if (has(bit(kKeyStage)) && has(bit(kKeyName))) {
    *dict = annotation(items, count, at);
  } else if (has(bit(kKeyConf) | bit(kKeyMaxSplitSize) | bit(kKeyGarbageCollectionThreshold) |
                 bit(kKeyExpandableSegments))) {
    *dict = settings(items, count, at);
    parts_.seen.settings |= keys;
  } else {
    *dict = numbers(items, count);
  }
  if (failure_.empty()) return account();
  return false;
}

Value Builder::tuple(const Value* items, size_t count, uint64_t) {
  drop(items, count);
  if (count == 2 && items[0].kind == Kind::kInteger && items[1].kind == Kind::kInteger) {
    return pair_of(static_cast<int64_t>(items[0].bits), static_cast<int64_t>(items[1].bits));
  }
  return opaque();
}

Value Builder::pair_of(int64_t first, int64_t second) {
  if (first == 0 && second == 0) return {Kind::kPair, 0, 0};
  auto [known, added] =
      pair_ids_.try_emplace({first, second}, static_cast<uint32_t>(parts_.pairs.size()));
  if (added) {
    if (parts_.pairs.size() > kMostPayload || !grow(3 * sizeof(parts_.pairs[0])))
      return opaque();  // grow() has left its complaint
    parts_.pairs.push_back({first, second});
  }
  return {Kind::kPair, 0, known->second};
}

uint32_t Builder::string_of(uint64_t text) {
  if (strings_.size() <= text) strings_.resize(texts_.size());
  uint32_t& known = strings_[text];
  if (known == 0) {
    known = parts_.tables.strings.intern(texts_.get(static_cast<uint32_t>(text))) + 1;
  }
  return known - 1;
}

void Builder::note_unread_key(uint32_t id) {
  if (parts_.unread_keys.size() >= kMostUnreadKeys ||
      std::ranges::find(parts_.unread_keys, id) != parts_.unread_keys.end())
    return;
  parts_.unread_keys.push_back(id);
}

const char* Builder::to_pair(const Value& value, uint32_t* out) const {
  if (value.kind == Kind::kNone) return nullptr;
  if (value.kind != Kind::kPair) return "a pair of numbers";
  *out = static_cast<uint32_t>(value.bits);
  return nullptr;
}

const char* Builder::to_bool(const Value& value, bool* out) const {
  if (value.kind != Kind::kBool && value.kind != Kind::kInteger) return "true or false";
  *out = value.bits != 0;
  return nullptr;
}

}  // namespace gpumemprof::torch_snapshot
