#include "analysis/trace_source.h"

#include <algorithm>

#include "allocator/initial_state.h"

namespace gpumemprof {

TraceSource::TraceSource(const AllocatorSnapshot& snapshot, size_t index)
    : snapshot_(snapshot),
      trace_(snapshot.traces[index]),
      device_(static_cast<uint16_t>(index)),
      info_(snapshot.info) {
  info_.can.times = trace_.has_times;
  const TraceFacts facts = trace_facts(trace_);
  frees_in_two_steps_ = facts.records_completions;
  for (const EarlierBlock& block : earlier_blocks(trace_, facts).blocks) {
    before_.adopt(device_, block.address,
                  {block.requested_bytes, LiveBlock::kUnknownTime, block.stack, UINT32_MAX});
  }
}

uint64_t TraceSource::time_of(const AllocatorTrace& trace, uint64_t index, int64_t time_us) {
  if (!trace.has_times) return index * kTicksPerEvent;
  // A damaged file may hold any time; none below 1970 or beyond what nanoseconds can count.
  constexpr int64_t kMost = INT64_MAX / 1000;
  return static_cast<uint64_t>(std::clamp<int64_t>(time_us, 0, kMost)) * 1000;
}

Result<bool> TraceSource::next(EventBatch* batch) {
  constexpr size_t kBatchEvents = 4096;
  batch->clear();
  batch->reserve(kBatchEvents);
  batch->first_event = at_;
  batch->frees_in_two_steps = frees_in_two_steps_;
  const size_t end = std::min(at_ + kBatchEvents, trace_.events.size());
  for (; at_ < end; ++at_) {
    const AllocatorEvent event = trace_.events[at_];
    batch->time_ns.push_back(time_of(trace_, at_, event.time_us));
    batch->address.push_back(event.action == Action::kOom ? 0 : event.address);
    batch->size_bytes.push_back(event.size_bytes);
    batch->stack.push_back(event.stack);
    batch->thread.push_back(UINT32_MAX);
    batch->device.push_back(device_);
    batch->action.push_back(event.action);
  }
  return batch->size() != 0;
}

double TraceSource::progress() const {
  return trace_.events.empty()
             ? 1
             : static_cast<double>(at_) / static_cast<double>(trace_.events.size());
}

}  // namespace gpumemprof
