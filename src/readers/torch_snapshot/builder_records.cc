// Builder: events, blocks, frames, annotations.
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

/// One key of an event. Null, or what the value should have been.
[[gnu::always_inline]] inline const char* Builder::set_field(EventRecord* record, const Value& key,
                                                             const Value& value) {
  switch (key.bits) {
    case kKeyAction:
      if (value.kind != Kind::kText) return "the name of an action";
      record->event.action = action_of(value.bits);
      if (record->event.action == Action{})
        record->unread_action = static_cast<uint32_t>(value.bits);
      return nullptr;
    case kKeyAddr:
    case kKeyDeviceFree:
      record->has_place = true;
      return to_address(value, &record->event.address);
    case kKeySize:
      record->has_size = true;
      return to_size(value, &record->event.size_bytes);
    case kKeyStream:
      return to_signed(value, &record->stream);
    case kKeyTimeUs:
      record->has_time = true;
      return to_signed(value, &record->event.time_us);
    case kKeyFrames:
      return to_stack(value, &record->event.stack);
    case kKeyCompileContext:
      record->has_compile_context = true;
      if (value.kind != Kind::kText) {
        parts_.other_contexts += value.kind != Kind::kNone;
      } else if (value.bits != kWordNotAvailable) {
        record->compile_context = static_cast<uint32_t>(value.bits);
      }
      return nullptr;
    case kKeyUserMetadata:
      record->has_user_metadata = true;
      if (value.kind == Kind::kText) record->user_metadata = static_cast<uint32_t>(value.bits);
      parts_.other_contexts += value.kind != Kind::kText && value.kind != Kind::kNone;
      return nullptr;
    case kKeyForwardFrames:
      parts_.forward_frames += value.kind != Kind::kEmptyList && value.kind != Kind::kNone;
      return nullptr;
    case kKeyCategory:
      ++parts_.categories;
      return nullptr;
    case kKeyPoolId:
      record->has_pool = value.kind == Kind::kPair;
      return to_pair(value, &record->pool);
    default:
      unread_key(key);
      return nullptr;
  }
}

/// The last of the events that wait, once all its keys are set.
Value Builder::complete_event(uint64_t at) {
  const EventRecord& record = parts_.events.back();
  const char* missing = nullptr;
  if (record.unread_action == 0) {
    if (!record.has_size) missing = "an event has no 'size'";
    if (!record.has_place) missing = "an event has no 'addr'";
    if (record.event.action == Action{}) missing = "an event has an empty action";
  }
  if (missing) [[unlikely]] {
    parts_.events.pop_back();
    return wrong(missing, at);
  }
  return {Kind::kEvent, 0, parts_.events.size() - 1};
}

Value Builder::event(const Value* items, size_t count, uint64_t at) {
  EventRecord record;
  const auto set = [&](const Value& key, const Value& value) {
    return set_field(&record, key, value);
  };
  if (const auto wrong = set_fields("an event", items, count, at, set)) return *wrong;
  parts_.events.push_back(record);
  return complete_event(at);
}

/// One key of a block, likewise.
[[gnu::always_inline]] inline const char* Builder::set_field(BlockRecord* record, const Value& key,
                                                             const Value& value) {
  AllocatorBlock& block = record->block;
  switch (key.bits) {
    case kKeyAddress:
      return to_address(value, &block.address);
    case kKeySize:
      return to_size(value, &block.size_bytes);
    case kKeyRequestedSize:
      record->has_requested = true;
      return to_size(value, &block.requested_bytes);
    case kKeyFrames:
      record->has_stack = true;
      return to_stack(value, &block.stack);
    case kKeyHistory:
      if (value.kind == Kind::kHistories)
        record->last_use = &parts_.histories[value.bits];
      else if (value.kind != Kind::kEmptyList)
        return "a list of earlier uses";
      return nullptr;
    case kKeyState: {
      const bool is_text = value.kind == Kind::kText;
      if (is_text && value.bits == kWordActiveAllocated)
        block.state = BlockState::kAllocated;
      else if (is_text && (value.bits == kWordActivePendingFree ||
                           value.bits == kWordActiveAwaitingFree))
        block.state = BlockState::kPendingFree;
      else if (is_text && value.bits == kWordInactive)
        block.state = BlockState::kFree;
      else
        return "active_allocated, active_pending_free or inactive";
      return nullptr;
    }
    default:
      unread_key(key);
      return nullptr;
  }
}

Value Builder::complete_block(BlockRecord* record) {
  AllocatorBlock& block = record->block;
  if (record->last_use && !record->has_requested)
    block.requested_bytes = record->last_use->requested_bytes;
  if (record->last_use && !record->has_stack) block.stack = record->last_use->stack;
  parts_.blocks.push_back(block);
  return {Kind::kBlock, 0, parts_.blocks.size() - 1};
}

Value Builder::block(const Value* items, size_t count, uint64_t at) {
  BlockRecord record;
  const auto set = [&](const Value& key, const Value& value) {
    return set_field(&record, key, value);
  };
  if (const auto wrong = set_fields("a block", items, count, at, set)) return *wrong;
  return complete_block(&record);
}

bool Builder::learn_record(const Value& dict, const Value* items, size_t count) {
  if (dict.kind != Kind::kEvent && dict.kind != Kind::kBlock) return false;
  record_kind_ = dict.kind;
  record_keys_.clear();
  for (size_t i = 0; i < count; i += 2) record_keys_.push_back(items[i]);
  return true;
}

/// The fields of a record with the keys that were learnt. Nothing, or what comes of the dictionary
/// instead.
template <class Record>
[[gnu::always_inline]] inline std::optional<Value> Builder::set_known_fields(
    const char* of, Record* record, const Value* values, uint64_t at) {
  for (const Value& key : record_keys_) {
    const Value& value = *values++;
    if (key.kind != Kind::kText) continue;
    if (const char* expected = set_field(record, key, value)) [[unlikely]]
      return wrong_field(of, key, value, expected, at);
  }
  return std::nullopt;
}

bool Builder::set_record(Value* dict, const Value* values, uint64_t at) {
  if (record_kind_ == Kind::kBlock) {
    BlockRecord record;
    const auto wrong = set_known_fields("a block", &record, values, at);
    *dict = wrong ? *wrong : complete_block(&record);
  } else {
    const auto wrong = set_known_fields("an event", &parts_.events.emplace_back(), values, at);
    if (wrong) [[unlikely]]
      parts_.events.pop_back();
    *dict = wrong ? *wrong : complete_event(at);
  }
  // Of all that is accounted for only texts can have come since the list before.
  return failure_.empty() && (texts_.bytes() == texts_accounted_ || account());
}

Value Builder::frame(const Value* items, size_t count, uint64_t at) {
  Frame frame;
  const auto set = [&](const Value& key, const Value& value) -> const char* {
    if (key.bits == kKeyFilename || key.bits == kKeyName) {
      if (value.kind != Kind::kText) return "a text";
      (key.bits == kKeyFilename ? frame.file : frame.function) = string_of(value.bits);
    } else if (key.bits == kKeyLine) {
      // A code object without line numbers has line -1, which PyTorch writes as 2^64 - 1.
      const bool is_number = value.kind == Kind::kInteger || value.kind == Kind::kUnsigned ||
                             value.kind == Kind::kHuge || value.kind == Kind::kNone;
      if (!is_number) return "a line number";
      const bool fits = value.kind == Kind::kInteger && value.bits <= UINT32_MAX;
      frame.line = fits ? static_cast<uint32_t>(value.bits) : 0;
    } else if (key.bits == kKeyFxNodeOp) {
      ++parts_.fx_frames;
    }
    return nullptr;
  };
  if (const auto wrong = set_fields("a frame", items, count, at, set)) return *wrong;
  const uint32_t id = parts_.tables.stacks.intern_frame(frame);
  if (id > kMostPayload) failure_ = "more than 67 million different frames";
  return {Kind::kFrame, 0, id};
}

Value Builder::history(const Value* items, size_t count, uint64_t at) {
  HistoryRecord record;
  const auto set = [&](const Value& key, const Value& value) -> const char* {
    const char* expected = nullptr;
    if (key.bits == kKeyRealSize) expected = to_size(value, &record.requested_bytes);
    if (key.bits == kKeyFrames) expected = to_stack(value, &record.stack);
    return expected;
  };
  if (const auto wrong = set_fields("a block's history", items, count, at, set)) return *wrong;
  if (!grow(2 * sizeof record)) return {};
  parts_.histories.push_back(record);
  return {Kind::kHistory, 0, parts_.histories.size() - 1};
}

Value Builder::annotation(const Value* items, size_t count, uint64_t at) {
  Annotation annotation;
  const auto set = [&](const Value& key, const Value& value) -> const char* {
    int64_t number = 0;
    switch (key.bits) {
      case kKeyName:
        if (value.kind != Kind::kText) return "a text";
        annotation.name = string_of(value.bits);
        return nullptr;
      case kKeyStage:
        if (value.kind != Kind::kText || (value.bits != kWordStart && value.bits != kWordEnd))
          return "START or END";
        annotation.is_begin = value.bits == kWordStart;
        return nullptr;
      case kKeyDevice:
        if (const char* expected = to_signed(value, &number)) return expected;
        annotation.device = static_cast<int16_t>(number);
        return number < INT16_MIN || number > INT16_MAX ? "a device" : nullptr;
      case kKeyTimeUs:
        return to_signed(value, &annotation.time_us);
      default:  // whatever else the program said of it
        return nullptr;
    }
  };
  if (const auto wrong = set_fields("an annotation", items, count, at, set)) return *wrong;
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
