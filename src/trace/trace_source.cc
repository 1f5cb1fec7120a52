#include "trace/trace_source.h"

namespace gpumemprof {

TraceSource::TraceSource(const AllocatorSnapshot& snapshot, size_t index, const TraceStart& start)
    : snapshot_(snapshot),
      trace_(snapshot.traces[index]),
      start_(start),
      device_(static_cast<uint16_t>(index)),
      info_(snapshot.info),
      frees_in_two_steps_(start.facts.records_completions) {
  info_.can.times = trace_.has_times;
  for (const EarlierBlock& block : start.blocks) {
    before_.adopt_numbered(
        device_, block.number,
        {block.requested_bytes, LiveBlock::kUnknownTime, block.stack, UINT32_MAX});
  }
}

Result<bool> TraceSource::next(EventBatch* batch) {
  constexpr size_t kBatchEvents = 4096;
  const size_t first = at_;
  const size_t count = std::min(kBatchEvents, trace_.events.size() - first);
  batch->clear();
  batch->first_event = first;
  batch->frees_in_two_steps = frees_in_two_steps_;
  batch->time_ns.resize(count);
  batch->address.resize(count);
  batch->size_bytes.resize(count);
  batch->stack.resize(count);
  batch->action.resize(count);
  batch->block.resize(count);
  batch->block_count = start_.number_count;
  batch->thread.assign(count, UINT32_MAX);
  batch->device.assign(count, device_);
  for (size_t i = 0; i < count; ++i) {
    const AllocatorEvent event = trace_.events[first + i];
    batch->time_ns[i] = time_of(trace_, first + i, event.time_us);
    batch->address[i] = event.action == Action::kOom ? 0 : event.address;
    batch->size_bytes[i] = event.size_bytes;
    batch->stack[i] = event.stack;
    batch->action[i] = event.action;
    batch->block[i] = start_.numbers[first + i];
  }
  at_ += count;
  return count != 0;
}

double TraceSource::progress() const {
  return trace_.events.empty()
             ? 1
             : static_cast<double>(at_) / static_cast<double>(trace_.events.size());
}

}  // namespace gpumemprof
