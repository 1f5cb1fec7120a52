#include "recording/followed_source.h"

#include <algorithm>

namespace gpumemprof {

FollowedSource::FollowedSource(std::unique_ptr<EventSource> source, Sizes sizes,
                               std::set<uint16_t> left_alone)
    : source_(std::move(source)),
      sizes_(sizes),
      history_(*source_, {.stands_alone = false}),
      // Without its beginning no history is whole.
      follows_(source_->state_before_first_event() == nullptr),
      left_alone_(std::move(left_alone)) {}

bool FollowedSource::is_told(uint16_t device) {
  if (left_alone_.contains(device)) return false;
  const DeviceHistory* history = history_.find(device);
  if (history == nullptr) return false;
  told_.insert(device);
  return history->contradiction().empty();
}

Result<bool> FollowedSource::next(EventBatch* batch) {
  if (at_ >= recorded_.size()) {
    Result<bool> more = source_->next(batch);
    if (!more || !*more) return more;
    // Of nearly all recordings, which have no such allocator: nothing is copied.
    is_direct_ = !follows_ || std::ranges::none_of(source_->tables().allocators,
                                                   &FollowedAllocator::is_followed);
    if (is_direct_) {
      given_ = batch->first_event + batch->size();
      return true;
    }
    std::swap(*batch, recorded_);
    at_ = 0, total_ = requested_ = detail_ = mark_ = 0;
    place_ = {};
    is_fresh_ = true;
  } else {
    is_fresh_ = false;
  }
  batch->clear();
  batch->first_event = given_;
  batch->frees_in_two_steps = false;
  take_part(batch);
  given_ += batch->size();
  return true;
}

/// A batch ends blocks in one way: up to an event that ends them in the other.
void FollowedSource::take_part(EventBatch* batch) {
  bool is_decided = false;
  for (; at_ < recorded_.size(); ++at_) {
    const Action action = recorded_.action[at_];
    const bool told = is_told(recorded_.device[at_]);
    if (told ? is_free(action) : action == Action::kFreeRequested) {
      if (is_decided && batch->frees_in_two_steps != told) return;
      is_decided = true;
      batch->frees_in_two_steps = told;
    }
    take_marks(at_, batch);
    told ? tell(at_, batch) : pass(at_, batch);
  }
  take_marks(UINT32_MAX, batch);
}

void FollowedSource::take_marks(uint32_t before_event, EventBatch* batch) {
  for (; mark_ < recorded_.marks.size() && recorded_.marks[mark_].before_event <= before_event;
       ++mark_) {
    batch->marks.push_back(recorded_.marks[mark_]);
    batch->marks.back().before_event = static_cast<uint32_t>(batch->size());
  }
}

void FollowedSource::add_row(uint32_t i, uint64_t size_bytes, Action action,
                             EventBatch* batch) const {
  batch->time_ns.push_back(recorded_.time_ns[i]);
  batch->address.push_back(recorded_.address[i]);
  batch->size_bytes.push_back(size_bytes);
  batch->stack.push_back(recorded_.stack[i]);
  batch->thread.push_back(recorded_.thread[i]);
  batch->device.push_back(recorded_.device[i]);
  batch->action.push_back(action);
  if (!recorded_.step.empty()) batch->step.push_back(recorded_.step[i]);
}

/// The event as its history has it: none, one, or both halves of a free.
void FollowedSource::tell(uint32_t i, EventBatch* batch) {
  const DeviceHistory& history = *history_.find(recorded_.device[i]);
  const uint64_t before = history.events().size();
  const uint64_t held = history.block_bytes(recorded_.address[i]);
  history_.add(recorded_, i, &place_);
  const auto first = static_cast<uint32_t>(batch->size());
  for (uint64_t e = before; e < history.events().size(); ++e) {
    const AllocatorEvent event = history.events()[e];
    const bool is_block = event.action == Action::kAlloc || is_free(event.action);
    const uint64_t taken = event.action == Action::kAlloc ? recorded_.size_bytes[i] : held;
    const bool as_allocated = sizes_ == Sizes::kAllocated && is_block;
    const auto row = static_cast<uint32_t>(batch->size());
    if (as_allocated && taken != event.size_bytes)
      batch->requested.push_back({row, event.size_bytes});
    add_row(i, as_allocated ? taken : event.size_bytes, event.action, batch);
  }
  const bool has_row = first < batch->size();
  auto& totals = recorded_.totals;
  while (total_ < totals.size() && totals[total_].event < i) ++total_;
  if (has_row && total_ < totals.size() && totals[total_].event == i) {
    batch->totals.push_back(totals[total_]);
    batch->totals.back().event = first;
  }
  auto& details = recorded_.details;
  while (detail_ < details.size() && details[detail_].event < i) ++detail_;
  if (detail_ >= details.size() || details[detail_].event != i) return;
  for (uint32_t row = first; row < batch->size(); ++row) {
    batch->details.push_back(details[detail_]);
    batch->details.back().event = row;
  }
}

void FollowedSource::pass(uint32_t i, EventBatch* batch) {
  const auto row = static_cast<uint32_t>(batch->size());
  add_row(i, recorded_.size_bytes[i], recorded_.action[i], batch);
  const auto move = [&](const auto& from, size_t* next, auto* to) {
    while (*next < from.size() && from[*next].event < i) ++*next;
    if (*next >= from.size() || from[*next].event != i) return;
    to->push_back(from[*next]);
    to->back().event = row;
  };
  move(recorded_.totals, &total_, &batch->totals);
  move(recorded_.requested, &requested_, &batch->requested);
  move(recorded_.details, &detail_, &batch->details);
}

std::vector<AllocatorSnapshot> FollowedSource::finish() {
  std::vector<AllocatorSnapshot> histories = history_.finish();
  const std::vector<Device>& devices = source_->tables().devices;
  std::erase_if(told_, [&](uint16_t told) {
    return std::ranges::any_of(histories, [&](const AllocatorSnapshot& history) {
      return std::ranges::find(history.tables.devices, devices[told]) !=
             history.tables.devices.end();
    });
  });
  return histories;
}

}  // namespace gpumemprof
