#include "recording/lane.h"

#include <algorithm>

namespace gpumemprof {
namespace {

template <class T>
void append(std::vector<T>* to, const std::vector<T>& from, size_t at, size_t n) {
  to->insert(to->end(), from.begin() + static_cast<ptrdiff_t>(at),
             from.begin() + static_cast<ptrdiff_t>(at + n));
}

/// After the other columns. Empty means that no event has a step, in the batch as in the block.
void append_steps(EventBatch* batch, const EventBatch& block, size_t at, size_t n) {
  if (block.step.empty() && batch->step.empty()) return;
  batch->step.resize(batch->size() - n, kNoStep);
  if (block.step.empty()) {
    batch->step.resize(batch->size(), kNoStep);
  } else {
    append(&batch->step, block.step, at, n);
  }
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
  if (open.is_at_mark()) {
    key = key_of(open.block.marks[open.marks_at]);
  } else if (open.at < open.block.size()) {
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
  if (end == open.at) return 0;
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

/// Up to which a lane may go on before it is another one's turn.
uint64_t Merger::last_key_before_others(uint64_t end_time) const {
  const uint64_t most = end_time == kNoTime ? UINT64_MAX : (end_time << 1) - 1;
  return heap_.empty() ? most : std::min(most, heap_.front().key);
}

/// How many marks come with the next `n` events: those among them, and those right after them that
/// are not too late.
size_t Merger::marks_until(const Open& open, size_t n, uint64_t last_key) {
  const std::vector<Mark>& marks = open.block.marks;
  const size_t end = open.at + n;
  size_t at = open.marks_at;
  while (at < marks.size() && (marks[at].before_event < end ||
                               (marks[at].before_event == end && key_of(marks[at]) <= last_key))) {
    ++at;
  }
  return at - open.marks_at;
}

void Merger::take(Open* open, size_t n, size_t marks, EventBatch* batch) {
  EventBatch& block = open->block;
  for (size_t i = open->at; i < open->at + n && block.time_ns[i] < last_time_; ++i) {
    block.time_ns[i] = last_time_, ++clamped_;
  }
  if (n > 0) last_time_ = block.time_ns[open->at + n - 1];
  open->taken = open->at + n, open->marks_taken = open->marks_at + marks;
  const bool is_whole =
      open->at == 0 && n == block.size() && open->marks_at == 0 && marks == block.marks.size();
  if (is_whole && batch->size() == 0 && batch->marks.empty()) {
    std::swap(*batch, block);  // the whole block, nothing to copy: a sealed file of one process
    block.clear();
    open->at = open->totals_at = open->requested_at = open->details_at = open->marks_at = 0;
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
  append_steps(batch, block, open->at, n);
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
  auto& d = block.details;
  for (; open->details_at < d.size() && d[open->details_at].event < open->at;) {
    AllocatorDetail detail = d[open->details_at++];
    detail.event = static_cast<uint32_t>(detail.event + shift);
    batch->details.push_back(detail);
  }
  for (const size_t end = open->marks_at + marks; open->marks_at < end;) {
    Mark mark = block.marks[open->marks_at++];
    mark.before_event = static_cast<uint32_t>(mark.before_event + shift);
    batch->marks.push_back(mark);
  }
}

uint64_t Merger::bytes_read() const {
  uint64_t sum = 0;
  for (const Open& open : lanes_) sum += open.lane->bytes_read();
  return sum;
}

bool Merger::next(EventBatch* batch, uint64_t end_time) {
  batch->clear();
  // Without an event a batch cannot be sealed, so marks alone do not end it.
  while (!heap_.empty() && batch->size() < kBatchEvents &&
         (batch->size() == 0 || batch->marks.size() < kBatchMarks)) {
    Head head = heap_.front();
    if (head.key >> 1 >= end_time) break;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    Open& open = lanes_[head.lane];
    if (open.is_used_up()) {
      open.block.clear();
      open.begin_again();
      if (!open.lane->load(&open.block)) open.block = EventBatch{};  // ended: give the memory back
    } else {
      const size_t n = run_length(open, head, kBatchEvents - batch->size(), end_time);
      take(&open, n, marks_until(open, n, last_key_before_others(end_time)), batch);
    }
    push(head.lane);
  }
  return batch->size() > 0 || !batch->marks.empty();
}

}  // namespace gpumemprof
