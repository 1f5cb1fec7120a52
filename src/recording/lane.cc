#include "recording/lane.h"

#include <algorithm>

namespace gpumemprof {
namespace {

template <class T>
void append(std::vector<T>* to, const std::vector<T>& from, size_t at, size_t n) {
  to->insert(to->end(), from.begin() + static_cast<ptrdiff_t>(at),
             from.begin() + static_cast<ptrdiff_t>(at + n));
}

}  // namespace

uint64_t Merger::key_of(const EventBatch& block, size_t at) {
  return block.time_ns[at] << 1 | (block.action[at] == Action::kAlloc);
}

void Merger::add(std::unique_ptr<Lane> lane) {
  lanes_.push_back({std::move(lane), {}});
  push(static_cast<uint32_t>(lanes_.size() - 1));
}

/// A lane whose block is used up waits in the heap under the earliest time it could go on with.
void Merger::push(uint32_t index) {
  Open& open = lanes_[index];
  uint64_t key;
  if (open.at < open.block.size()) {
    key = key_of(open.block, open.at);
  } else {
    uint64_t time = open.lane->next_time();
    if (time == kNoTime) return;
    key = time << 1;
  }
  heap_.push_back({key, index});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

size_t Merger::run_length(const Open& open, const Head& self, size_t most,
                          uint64_t end_time) const {
  size_t end = std::min(open.block.size(), open.at + most);
  const auto& times = open.block.time_ns;
  if (end_time != kNoTime && times[end - 1] >= end_time) {
    end = static_cast<size_t>(std::lower_bound(times.begin() + static_cast<ptrdiff_t>(open.at),
                                               times.begin() + static_cast<ptrdiff_t>(end),
                                               end_time) -
                              times.begin());
  }
  if (heap_.empty()) return end - open.at;
  const Head& other = heap_.front();
  if (end > open.at && times[end - 1] < other.key >> 1) return end - open.at;
  size_t at = open.at;
  while (at < end) {
    Head head{key_of(open.block, at), self.lane};
    if (head > other) break;
    ++at;
  }
  return at - open.at;
}

void Merger::take(Open* open, size_t n, EventBatch* batch) {
  EventBatch& block = open->block;
  for (size_t i = open->at; i < open->at + n && block.time_ns[i] < last_time_; ++i) {
    block.time_ns[i] = last_time_, ++clamped_;
  }
  if (n > 0) last_time_ = block.time_ns[open->at + n - 1];
  open->taken = open->at + n;
  if (open->at == 0 && n == block.size() && batch->size() == 0) {
    std::swap(*batch, block);  // the whole block, nothing to copy: a sealed file of one process
    block.clear();
    open->at = open->totals_at = open->requested_at = 0;
    return;
  }
  const size_t shift = batch->size() - open->at;  // may wrap; added back below
  append(&batch->time_ns, block.time_ns, open->at, n);
  append(&batch->address, block.address, open->at, n);
  append(&batch->size_bytes, block.size_bytes, open->at, n);
  append(&batch->stack, block.stack, open->at, n);
  append(&batch->thread, block.thread, open->at, n);
  append(&batch->device, block.device, open->at, n);
  append(&batch->action, block.action, open->at, n);
  open->at += n;
  for (auto& t = block.totals; open->totals_at < t.size() && t[open->totals_at].event < open->at;) {
    DeviceTotals totals = t[open->totals_at++];
    totals.event = static_cast<uint32_t>(totals.event + shift);
    batch->totals.push_back(totals);
  }
  auto& r = block.requested;
  for (; open->requested_at < r.size() && r[open->requested_at].event < open->at;) {
    RequestedSize requested = r[open->requested_at++];
    requested.event = static_cast<uint32_t>(requested.event + shift);
    batch->requested.push_back(requested);
  }
}

uint64_t Merger::bytes_read() const {
  uint64_t sum = 0;
  for (const Open& open : lanes_) sum += open.lane->bytes_read();
  return sum;
}

bool Merger::next(EventBatch* batch, uint64_t end_time) {
  batch->clear();
  while (!heap_.empty() && batch->size() < kBatchEvents) {
    Head head = heap_.front();
    if (head.key >> 1 >= end_time) break;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    Open& open = lanes_[head.lane];
    if (open.at >= open.block.size()) {
      open.block.clear();
      open.at = open.taken = open.totals_at = open.requested_at = 0;
      if (!open.lane->load(&open.block)) open.block = EventBatch{};  // ended: give the memory back
    } else {
      size_t n = run_length(open, head, kBatchEvents - batch->size(), end_time);
      take(&open, n, batch);
    }
    push(head.lane);
  }
  return batch->size() > 0;
}

}  // namespace gpumemprof
