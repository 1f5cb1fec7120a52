// An EventSource over events in memory: for tests, and for readers that hold everything.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Yields its events in batches of `batch_size`. The tables may be filled before the first next().
class MemorySource : public EventSource {
 public:
  explicit MemorySource(EventBatch events, size_t batch_size = 4096)
      : events_(std::move(events)), batch_size_(batch_size) {
    info_.path = "memory";
    info_.kind = SourceKind::kMemory;
    info_.can = {.times = true,
                 .addresses = true,
                 .stacks = true,
                 .complete_history = true,
                 .threads = true};
  }

  Tables& mutable_tables() { return tables_; }
  Loss& mutable_loss() { return loss_; }
  SourceInfo& mutable_info() { return info_; }
  void set_state_before(LiveState state) {
    before_ = std::make_unique<LiveState>(std::move(state));
  }

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return before_.get(); }
  double progress() const override {
    return events_.size() == 0 ? 1 : static_cast<double>(at_) / static_cast<double>(events_.size());
  }

  Result<bool> next(EventBatch* batch) override {
    batch->clear();
    batch->first_event = events_.first_event + at_;
    const size_t end = std::min(at_ + batch_size_, events_.size());
    for (const DeviceTotals& totals : events_.totals) {
      if (totals.event >= at_ && totals.event < end) {
        batch->totals.push_back(totals);
        batch->totals.back().event -= static_cast<uint32_t>(at_);
      }
    }
    for (const RequestedSize& one : events_.requested) {
      if (one.event >= at_ && one.event < end)
        batch->requested.push_back({one.event - static_cast<uint32_t>(at_), one.bytes});
    }
    for (const Mark& mark : events_.marks) {
      const bool is_last = end == events_.size() && mark.before_event == end;
      if (mark.before_event < at_ || (mark.before_event >= end && !is_last)) continue;
      batch->marks.push_back(mark);
      batch->marks.back().before_event -= static_cast<uint32_t>(at_);
    }
    for (; at_ < end; ++at_) {
      batch->time_ns.push_back(events_.time_ns[at_]);
      batch->address.push_back(events_.address[at_]);
      batch->size_bytes.push_back(events_.size_bytes[at_]);
      batch->stack.push_back(events_.stack[at_]);
      batch->thread.push_back(events_.thread[at_]);
      batch->device.push_back(events_.device[at_]);
      batch->action.push_back(events_.action[at_]);
      if (!events_.step.empty()) batch->step.push_back(events_.step[at_]);
    }
    return batch->size() != 0;
  }

 private:
  EventBatch events_;
  size_t batch_size_;
  size_t at_ = 0;
  SourceInfo info_;
  Tables tables_;
  Loss loss_;
  std::unique_ptr<LiveState> before_;
};

/// One row of a batch, to build batches by hand.
struct EventRow {
  uint64_t time_ns = 0;
  Action action = Action::kAlloc;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t stack = 0;
  uint32_t thread = 0;
  uint16_t device = 0;
};

inline void append(EventBatch* batch, const EventRow& row) {
  batch->time_ns.push_back(row.time_ns);
  batch->address.push_back(row.address);
  batch->size_bytes.push_back(row.size_bytes);
  batch->stack.push_back(row.stack);
  batch->thread.push_back(row.thread);
  batch->device.push_back(row.device);
  batch->action.push_back(row.action);
}

}  // namespace gpumemprof
