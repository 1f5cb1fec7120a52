#include "recording/raw_stream.h"

#include <string.h>

#include <algorithm>

#include "format/format.h"
#include "trace/event.h"

namespace gpumemprof {

using namespace format;

Intervals sources_of(const RawStream& stream) {
  Intervals list;
  for (const ChunkRef& chunk : stream.chunks) {
    uint64_t first = chunk.header.first_ordinal;
    if (first < UINT64_MAX / 2) list.add({first, first + chunk.header.count});
  }
  if (const StageHalf* half = stream.half.get(); half && half->first_ordinal < UINT64_MAX / 2) {
    uint64_t count = half->records.size() + half->missing;
    list.add({half->first_ordinal, half->first_ordinal + count});
  }
  return list;
}

uint64_t missing_records(const Intervals& consumed, const RawStream* stream) {
  Intervals all = consumed;
  if (stream != nullptr) all.add(sources_of(*stream));
  return all.missing();
}

namespace {

Mark mark_of(const RawEvent& record, RawStream& stream) {
  Mark mark;
  mark.kind = static_cast<MarkKind>(mark_kind_of(record));
  mark.thread = stream.thread;
  mark.text = stream.definitions->text(mark_string_of(record));
  mark.time_ns = time_of(record);
  mark.address = address_of(record), mark.value = size_of(record);
  if (mark.kind == MarkKind::kCopied) mark.value = mark_source_of(record), mark.text = 0;
  return mark;
}

}  // namespace

void each_raw_mark(File& file, RawStream& stream, MarkKind kind,
                   const std::function<void(const Mark&)>& take) {
  const auto look = [&](const RawEvent* records, size_t count, uint32_t sequence) {
    const uint8_t expected = salt(stream.id, sequence);
    for (size_t i = 0; i < count; ++i) {
      const RawEvent& record = records[i];
      if (action_of(record) != kRawMark || !is_intact(record, expected)) continue;
      if (static_cast<MarkKind>(mark_kind_of(record)) == kind) take(mark_of(record, stream));
    }
  };
  for (const ChunkRef& chunk : stream.chunks) {
    auto payload = read_chunk(file, chunk);
    if (!payload) continue;  // the lane will say so
    std::vector<RawEvent> records(payload->size() / sizeof(RawEvent));
    memcpy(records.data(), payload->data(), records.size() * sizeof(RawEvent));
    look(records.data(), records.size(), static_cast<uint32_t>(chunk.header.sequence));
  }
  if (const StageHalf* half = stream.half.get()) {
    look(half->records.data(), half->records.size(), half->sequence);
  }
}

RawLane::RawLane(File* file, RawStream* stream, uint64_t time_shift_ns, RawLosses* losses)
    : file_(file), stream_(stream), shift_(time_shift_ns), losses_(losses) {
  half_done_ = !stream->half;
  if (half_done_) return;
  // A damaged record must not say when the half begins: the lane would come too late for its
  // events.
  const uint8_t expected = salt(stream->id, stream->half->sequence);
  for (const RawEvent& record : stream->half->records) {
    if (!is_intact(record, expected)) continue;
    half_time_ = time_of(record);
    break;
  }
}

uint64_t RawLane::next_time() const {
  uint64_t time = kNoTime;
  if (next_chunk_ < stream_->chunks.size()) {
    time = stream_->chunks[next_chunk_].header.time_first_ns;
  } else if (!half_done_) {
    time = half_time_;
  }
  if (time == kNoTime) return time;
  // A header or a record that lies about its time cannot make the lane go back.
  return std::max(std::min(time, (uint64_t{1} << 56) - 1) + shift_, last_time_);
}

bool RawLane::load(EventBatch* block) {
  block_ordinal_ = next_ordinal_;
  ordinal_after_.clear(), ordinal_after_mark_.clear();
  if (next_chunk_ < stream_->chunks.size()) {
    const ChunkRef& chunk = stream_->chunks[next_chunk_++];
    uint64_t first = chunk.header.first_ordinal, count = chunk.header.count;
    if (stream_->consumed.covered(first, first + count) == count) {
      return next_ordinal_ = std::max(next_ordinal_, first + count), true;
    }
    auto payload = read_chunk(*file_, chunk);
    if (!payload) return ++losses_->changed_chunks, true;
    bytes_read_ += payload->size();
    std::vector<RawEvent> records(payload->size() / sizeof(RawEvent));
    memcpy(records.data(), payload->data(), records.size() * sizeof(RawEvent));
    decode(records.data(), records.size(), first, static_cast<uint32_t>(chunk.header.sequence),
           true, block);
    return true;
  }
  if (half_done_) return false;
  half_done_ = true;
  const StageHalf& half = *stream_->half;
  decode(half.records.data(), half.records.size(), half.first_ordinal, half.sequence, false, block);
  losses_->cut_records += half.missing;
  return true;
}

void RawLane::decode(const RawEvent* records, size_t count, uint64_t first_ordinal,
                     uint32_t sequence, bool checked, EventBatch* block) {
  const uint8_t expected = salt(stream_->id, sequence);
  uint64_t last = 0;
  step_ = kNoStep;
  for (size_t i = 0; i < count; ++i) {
    uint64_t ordinal = first_ordinal + i;
    const RawEvent& record = records[i];
    // A step holds for what comes after it, also where it is in sealed chunks itself.
    const bool says_step = is_step(record) && is_intact(record, expected);
    if (says_step) step_ = has_step(record) ? step_of(record) : kNoStep;
    if (ordinal < next_ordinal_) continue;  // a second copy
    next_ordinal_ = ordinal + 1;
    if (stream_->consumed.covered(ordinal, ordinal + 1)) {
      forget_what_came_before();
      continue;
    }
    // A buffer has no CRC. What an earlier turn left in it can have the right parity by chance,
    // never a later time.
    if (!is_intact(record, expected) || (!checked && time_of(record) < last)) {
      ++losses_->damaged_records;
      forget_what_came_before();
      step_ = kNoStep;  // it may have been another one
      continue;
    }
    last = time_of(record);
    losses_->events += events_among(&record, 1);
    if (says_step) {
      totals_may_follow_ = has_wide_ =
          false;  // what the device had free stays: its refusal comes after both
      continue;
    }
    decode_one(record, ordinal, block);
  }
}

void RawLane::forget_what_came_before() {
  totals_may_follow_ = has_wide_ = has_device_free_ = false;
}

void RawLane::decode_one(const RawEvent& record, uint64_t ordinal, EventBatch* block) {
  uint64_t size = size_of(record);
  uint32_t raw_stack = stack_of(record);
  Action action;
  switch (action_of(record)) {
    case kRawAlloc:
      action = Action::kAlloc;
      break;
    case kRawFreeRequested:
      action = Action::kFreeRequested;
      break;
    case kRawFreeCompleted:
      action = Action::kFreeCompleted;
      break;
    case kRawOom:
      action = Action::kOom;
      break;
    case kRawTotals:
      if (has_wide_ && (detail_ & 15) != kNoDetail) return decode_pair(record, ordinal, block);
      if (totals_may_follow_) {
        block->totals.push_back({static_cast<uint32_t>(block->size() - 1), address_of(record),
                                 size * 512 + (raw_stack & 511)});
        ordinal_after_.back() = ordinal + 1;
      }
      totals_may_follow_ = false;
      return;
    case kRawWide:
      wide_ = size, has_wide_ = true, totals_may_follow_ = false;
      requested_ = address_of(record), detail_ = raw_stack;
      return;
    case kRawMark:
      return decode_mark(record, ordinal, block);
    default:
      ++losses_->damaged_records;
      return forget_what_came_before();
  }
  const uint64_t requested = has_wide_ ? requested_ : 0;
  if (has_wide_) size |= (wide_ & ((1u << 27) - 1)) << 37;
  if (!has_wide_) detail_ = 0;
  has_wide_ = totals_may_follow_ = false;
  if (!append(action, record, size, raw_stack, ordinal, block)) return;
  if (requested != 0 && requested != size) {
    block->requested.push_back({static_cast<uint32_t>(block->size() - 1), requested});
  }
  add_detail(action, block);
  totals_may_follow_ = true;
}

/// What an allocator itself told: two records, one event or none.
void RawLane::decode_pair(const RawEvent& record, uint64_t ordinal, EventBatch* block) {
  static constexpr Action kActions[] = {Action::kSegmentAlloc, Action::kSegmentFree,
                                        Action::kSegmentMap, Action::kSegmentUnmap};
  const uint32_t kind = detail_ & 15;
  has_wide_ = totals_may_follow_ = false;
  if (kind == kDetailDeviceFree) {
    device_free_ = address_of(record), has_device_free_ = true;
  } else if (kind <= kDetailSegmentUnmap) {
    const Action action = kActions[kind - kDetailSegmentAlloc];
    if (append(action, record, size_of(record) * 512, stack_of(record), ordinal, block)) {
      add_detail(action, block);
    }
  }
}

/// What device memory was free stays, as over a step: its refusal comes after both.
void RawLane::decode_mark(const RawEvent& record, uint64_t ordinal, EventBatch* block) {
  totals_may_follow_ = has_wide_ = false;
  const RawMarkKind kind = mark_kind_of(record);
  if (kind < kMarkSaved || kind > kLastMark) return;  // a newer minor's
  Mark mark = mark_of(record, *stream_);
  mark.before_event = static_cast<uint32_t>(block->size());
  mark.time_ns = time_in_order(mark.time_ns + shift_);
  block->marks.push_back(mark);
  ordinal_after_mark_.push_back(ordinal + 1);
}

void RawLane::add_detail(Action action, EventBatch* block) {
  AllocatorDetail detail;
  detail.event = static_cast<uint32_t>(block->size() - 1);
  detail.is_delayed_free = (detail_ & 15) == kDetailDelayedFree && action == Action::kFreeRequested;
  if (const Placement* place = stream_->definitions->placement(detail_ >> 4)) {
    detail.stream = place->stream, detail.pool = place->pool;
  } else if (detail_ >> 4 != 0) {
    ++losses_->no_placement;
  }
  if (action == Action::kOom && has_device_free_) {
    detail.has_device_free = true, detail.device_free_bytes = device_free_;
  }
  has_device_free_ = false;
  const AllocatorDetail usual{.event = detail.event};
  if (detail != usual) block->details.push_back(detail);
}

/// False where the event's device is not known.
bool RawLane::append(Action action, const RawEvent& record, uint64_t size, uint32_t stack,
                     uint64_t ordinal, EventBatch* block) {
  int32_t device = stream_->definitions->device(device_class_of(record));
  if (device < 0) return ++losses_->no_device, false;
  take_step(action, block);
  block->time_ns.push_back(time_in_order(time_of(record) + shift_));
  block->address.push_back(address_of(record));
  block->size_bytes.push_back(size);
  block->stack.push_back(stream_->definitions->stack(stack));
  block->thread.push_back(stream_->thread);
  block->device.push_back(static_cast<uint16_t>(device));
  block->action.push_back(action);
  ordinal_after_.push_back(ordinal + 1);
  return true;
}

uint64_t RawLane::time_in_order(uint64_t time_ns) {
  if (time_ns < last_time_) time_ns = last_time_, ++losses_->clamped_times;
  return last_time_ = time_ns;
}

/// Of the event that comes next in the block.
void RawLane::take_step(Action action, EventBatch* block) {
  const int64_t step = is_free(action) ? kNoStep : step_;
  if (step == kNoStep && block->step.empty()) return;
  block->step.resize(block->size(), kNoStep);  // of those before the first
  block->step.push_back(step);
}

uint64_t RawLane::ordinal_after(size_t taken, size_t marks) const {
  if (taken == 0 && marks == 0) return block_ordinal_;
  // All of the block: what follows its last event (damaged records) goes with it.
  if (taken >= ordinal_after_.size() && marks >= ordinal_after_mark_.size()) return next_ordinal_;
  const uint64_t after_events =
      taken == 0 ? block_ordinal_ : ordinal_after_[std::min(taken, ordinal_after_.size()) - 1];
  const uint64_t after_marks =
      marks == 0 ? 0 : ordinal_after_mark_[std::min(marks, ordinal_after_mark_.size()) - 1];
  return std::max(after_events, after_marks);
}

}  // namespace gpumemprof
