#include "trace/snapshot_source.h"

#include <algorithm>
#include <limits>

#include "trace/trace_start.h"

namespace gpumemprof {
namespace {

constexpr size_t kBatchEvents = 4096;

uint64_t nanoseconds(int64_t time_us) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000;
  return static_cast<uint64_t>(std::clamp<int64_t>(time_us, 0, kMost)) * 1000;
}

/// The bytes in the device's segments before the first event, computed backwards from the end. 0 if
/// the trace has the whole history.
uint64_t reserved_before(const AllocatorTrace& trace) {
  uint64_t bytes = 0;
  for (const AllocatorSegment& segment : trace.segments) bytes += segment.size_bytes;
  const AllocatorEvents& events = trace.events;
  for (size_t i = events.next_other(0); i < events.size(); i = events.next_other(i + 1)) {
    const AllocatorEvent event = events[i];
    if (event.action == Action::kSegmentAlloc || event.action == Action::kSegmentMap)
      bytes -= event.size_bytes;
    if (event.action == Action::kSegmentFree || event.action == Action::kSegmentUnmap)
      bytes += event.size_bytes;
  }
  return bytes;
}

}  // namespace

SnapshotSource::SnapshotSource(std::shared_ptr<const AllocatorSnapshot> snapshot)
    : snapshot_(std::move(snapshot)), info_(snapshot_->info), at_(snapshot_->traces.size()) {
  find_capabilities();
  find_state_before();
}

void SnapshotSource::find_capabilities() {
  Capabilities& can = info_.can;
  can.addresses = true;
  can.stacks = snapshot_->tables.stacks.stack_count() > 1;
  can.complete_history = can.times = merged_ = true;
  for (const AllocatorTrace& trace : snapshot_->traces) {
    total_ += trace.events.size();
    can.segments |= !trace.segments.empty();
    if (trace.overflowed || reserved_before(trace) != 0) can.complete_history = false;
    if (!trace.events.empty() && !trace.has_times) can.times = merged_ = false;
    frees_in_two_steps_ |= trace_facts(trace).records_completions;
  }
}

void SnapshotSource::find_state_before() {
  auto before = std::make_unique<LiveState>();
  for (size_t i = 0; i < snapshot_->traces.size(); ++i) {
    adopt_blocks_of(static_cast<uint16_t>(i), before.get());
  }
  if (before->live_count() == 0) return;
  info_.can.complete_history = false;
  before_ = std::move(before);
}

void SnapshotSource::adopt_blocks_of(uint16_t device, LiveState* before) const {
  const AllocatorTrace& trace = snapshot_->traces[device];
  TraceFacts facts = trace_facts(trace);
  facts.records_completions = frees_in_two_steps_;  // of all devices: batches have events of all
  for (const EarlierBlock& block : trace_start(trace, std::move(facts)).blocks) {
    before->adopt(device, block.address,
                  {block.requested_bytes, LiveBlock::kUnknownTime, block.stack, UINT32_MAX});
  }
}

size_t SnapshotSource::next_device(int64_t* until_us, bool* until_is_later_device) const {
  size_t first = at_.size();
  int64_t first_us = 0;
  *until_us = std::numeric_limits<int64_t>::max();
  *until_is_later_device = true;
  for (size_t i = 0; i < at_.size(); ++i) {
    const AllocatorEvents& events = snapshot_->traces[i].events;
    if (at_[i] == events.size()) continue;
    const int64_t time_us = merged_ ? events[at_[i]].time_us : 0;
    if (first == at_.size() || time_us < first_us) {
      if (first != at_.size()) *until_us = first_us, *until_is_later_device = false;
      first = i, first_us = time_us;
    } else if (time_us < *until_us) {
      *until_us = time_us, *until_is_later_device = true;
    }
  }
  return first;
}

Result<bool> SnapshotSource::next(EventBatch* batch) {
  batch->clear();
  batch->first_event = yielded_;
  batch->frees_in_two_steps = frees_in_two_steps_;
  batch->reserve(kBatchEvents);
  while (batch->size() < kBatchEvents) {
    int64_t until_us;
    bool until_is_later;
    const size_t device = next_device(&until_us, &until_is_later);
    if (device == at_.size()) break;
    const AllocatorTrace& trace = snapshot_->traces[device];
    while (at_[device] < trace.events.size() && batch->size() < kBatchEvents) {
      const AllocatorEvent event = trace.events[at_[device]];
      // At the same moment, events of the lower device come first.
      if (merged_ && (until_is_later ? event.time_us > until_us : event.time_us >= until_us)) break;
      batch->time_ns.push_back(trace.has_times ? nanoseconds(event.time_us) : 0);
      // In events without an address this field has another meaning.
      const bool has_address = event.action != Action::kOom && event.action != Action::kSnapshot;
      batch->address.push_back(has_address ? event.address : 0);
      batch->size_bytes.push_back(event.size_bytes);
      batch->stack.push_back(event.stack);
      batch->thread.push_back(UINT32_MAX);
      batch->device.push_back(static_cast<uint16_t>(device));
      batch->action.push_back(event.action);
      batch->stream.push_back(trace.streams[event.stream]);
      ++at_[device];
    }
  }
  yielded_ += batch->size();
  return batch->size() != 0;
}

double SnapshotSource::progress() const {
  return total_ == 0 ? 1 : static_cast<double>(yielded_) / static_cast<double>(total_);
}

}  // namespace gpumemprof
