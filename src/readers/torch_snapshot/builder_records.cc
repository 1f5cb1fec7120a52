// Builder: events, frames, annotations.
#include "readers/torch_snapshot/builder.h"

namespace gpumemprof::torch_snapshot {
namespace {

Action action_of(uint64_t word) {
  switch (word) {
    case kWordAlloc:
      return Action::kAlloc;
    case kWordFreeRequested:
      return Action::kFreeRequested;
    case kWordFreeCompleted:
    case kWordFree:  // torch 1.13
      return Action::kFreeCompleted;
    case kWordOom:
      return Action::kOom;
    case kWordSegmentAlloc:
      return Action::kSegmentAlloc;
    case kWordSegmentFree:
      return Action::kSegmentFree;
    case kWordSegmentMap:
      return Action::kSegmentMap;
    case kWordSegmentUnmap:
      return Action::kSegmentUnmap;
    case kWordSnapshot:
      return Action::kSnapshot;
    default:
      return Action{};
  }
}

}  // namespace

Value Builder::event(const Value* items, size_t count, uint64_t at) {
  EventRecord record;
  bool has_place = false, has_size = false;
  for (size_t i = 0; i < count; i += 2) {
    const Value& key = items[i];
    const Value& value = items[i + 1];
    if (key.kind != Kind::kText) continue;
    const char* expected = nullptr;
    switch (key.bits) {
      case kKeyAction:
        if (value.kind != Kind::kText) {
          expected = "the name of an action";
          break;
        }
        record.event.action = action_of(value.bits);
        if (record.event.action == Action{})
          record.unread_action = static_cast<uint32_t>(value.bits);
        break;
      case kKeyAddr:
      case kKeyDeviceFree:
        expected = to_address(value, &record.event.address);
        has_place = true;
        break;
      case kKeySize:
        expected = to_size(value, &record.event.size_bytes);
        has_size = true;
        break;
      case kKeyStream:
        expected = to_signed(value, &record.stream);
        break;
      case kKeyTimeUs:
        expected = to_signed(value, &record.event.time_us);
        record.has_time = true;
        break;
      case kKeyFrames:
        expected = to_stack(value, &record.event.stack);
        break;
      case kKeyPoolId:
        expected = to_pair(value, &record.pool);
        record.has_pool = value.kind == Kind::kPair;
        break;
      default:
        unread_key(key);
    }
    if (expected) return wrong_field("an event", key, value, expected, at);
  }
  if (record.unread_action == 0) {
    if (record.event.action == Action{}) return wrong("an event has an empty action", at);
    if (!has_place) return wrong("an event has no 'addr'", at);
    if (!has_size) return wrong("an event has no 'size'", at);
  }
  parts_.events.push_back(record);
  return {Kind::kEvent, 0, parts_.events.size() - 1};
}

Value Builder::frame(const Value* items, size_t count, uint64_t at) {
  Frame frame;
  for (size_t i = 0; i < count; i += 2) {
    const Value& key = items[i];
    const Value& value = items[i + 1];
    if (key.kind != Kind::kText) continue;
    if (key.bits == kKeyFilename || key.bits == kKeyName) {
      if (value.kind != Kind::kText) return wrong_field("a frame", key, value, "a text", at);
      (key.bits == kKeyFilename ? frame.file : frame.function) = string_of(value.bits);
    } else if (key.bits == kKeyLine) {
      // A code object without line numbers has line -1, which PyTorch writes as 2^64 - 1.
      const bool is_number = value.kind == Kind::kInteger || value.kind == Kind::kUnsigned ||
                             value.kind == Kind::kHuge || value.kind == Kind::kNone;
      if (!is_number) return wrong_field("a frame", key, value, "a line number", at);
      const bool fits = value.kind == Kind::kInteger && value.bits <= UINT32_MAX;
      frame.line = fits ? static_cast<uint32_t>(value.bits) : 0;
    }
  }
  const uint32_t id = parts_.tables.stacks.intern_frame(frame);
  if (id > kMostPayload) failure_ = "more than 67 million different frames";
  return {Kind::kFrame, 0, id};
}

Value Builder::history(const Value* items, size_t count, uint64_t at) {
  HistoryRecord record;
  for (size_t i = 0; i < count; i += 2) {
    const Value& key = items[i];
    const Value& value = items[i + 1];
    if (key.kind != Kind::kText) continue;
    const char* expected = nullptr;
    if (key.bits == kKeyRealSize) expected = to_size(value, &record.requested_bytes);
    if (key.bits == kKeyFrames) expected = to_stack(value, &record.stack);
    if (expected) return wrong_field("a block's history", key, value, expected, at);
  }
  if (!grow(2 * sizeof record)) return {};
  parts_.histories.push_back(record);
  return {Kind::kHistory, 0, parts_.histories.size() - 1};
}

Value Builder::annotation(const Value* items, size_t count, uint64_t at) {
  Annotation annotation;
  for (size_t i = 0; i < count; i += 2) {
    const Value& key = items[i];
    const Value& value = items[i + 1];
    if (key.kind != Kind::kText) continue;
    const char* expected = nullptr;
    int64_t number = 0;
    switch (key.bits) {
      case kKeyName:
        if (value.kind == Kind::kText) {
          annotation.name = string_of(value.bits);
        } else {
          expected = "a text";
        }
        break;
      case kKeyStage:
        if (value.kind != Kind::kText || (value.bits != kWordStart && value.bits != kWordEnd))
          expected = "START or END";
        annotation.is_begin = value.bits == kWordStart;
        break;
      case kKeyDevice:
        expected = to_signed(value, &number);
        if (!expected && (number < INT16_MIN || number > INT16_MAX)) expected = "a device";
        annotation.device = static_cast<int16_t>(number);
        break;
      case kKeyTimeUs:
        expected = to_signed(value, &annotation.time_us);
        break;
      default:  // whatever else the program said of it
        break;
    }
    if (expected) return wrong_field("an annotation", key, value, expected, at);
  }
  parts_.annotations.push_back(annotation);
  return {Kind::kAnnotation, 0, parts_.annotations.size() - 1};
}

Value Builder::numbers(const Value* items, size_t count) {
  constexpr size_t kMostItems = 256;
  if (count > kMostItems) return opaque();
  std::vector<std::pair<uint32_t, int64_t>> numbers;
  for (size_t i = 0; i < count; i += 2) {
    if (items[i].kind != Kind::kText || items[i + 1].kind != Kind::kInteger) return opaque();
    numbers.push_back(
        {static_cast<uint32_t>(items[i].bits), static_cast<int64_t>(items[i + 1].bits)});
  }
  if (!grow(64 + count * sizeof numbers[0])) return opaque();
  parts_.number_maps.push_back(std::move(numbers));
  return {Kind::kNumbers, 0, parts_.number_maps.size() - 1};
}

}  // namespace gpumemprof::torch_snapshot
