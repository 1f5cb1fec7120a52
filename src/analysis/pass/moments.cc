#include "analysis/pass/moments.h"

#include <algorithm>

#include "analysis/categories/categories.h"
#include "trace/holder_lines.h"

namespace gpumemprof {

std::vector<Holder> totals_of(const DeviceState& state) {
  std::vector<Holder> totals;
  totals.reserve(state.sites.size());
  for (const auto& [stack, site] : state.sites) {
    if (site.total_count != 0) totals.push_back({stack, site.total_bytes, site.total_count});
  }
  return totals;
}

MomentGatherer::MomentGatherer(std::span<const MomentRequest> wanted, const LiveState& state,
                               Categories* categories, bool of_sums)
    : wanted_(wanted.begin(), wanted.end()),
      state_(state),
      categories_(categories),
      of_sums_(of_sums),
      is_time_over_(wanted.size()),
      taken_(wanted.size()) {}

/// What was live before the first event of a device has no event to tell it.
void MomentGatherer::meet(uint16_t device, uint64_t live_bytes) {
  while (within_.size() <= device) within_.push_back({live_bytes, live_bytes});
}

void MomentGatherer::begin_batch(const EventBatch& batch, const Tables& tables, uint64_t start_ns) {
  tables_ = &tables, first_event_ = batch.first_event, start_ns_ = start_ns;
  batch_size_ = batch.size();
  pending_.clear(), at_ = 0;
  for (const Mark& mark : batch.marks) {
    if (mark.kind != MarkKind::kStep || mark.thread >= tables.threads.size()) continue;
    pending_.push_back(
        {mark.before_event, mark.time_ns, true, tables.threads[mark.thread].process, mark.value});
  }
  for (size_t r = 0; r < wanted_.size(); ++r) {
    if (wanted_[r].kind != MomentRequest::kTime || is_time_over_[r] || batch_size_ == 0) continue;
    const uint64_t time = start_ns + wanted_[r].value;
    const auto after = std::upper_bound(batch.time_ns.begin(), batch.time_ns.end(), time);
    if (after == batch.time_ns.end()) continue;  // the next batch may begin with such events
    is_time_over_[r] = true;
    pending_.push_back({static_cast<size_t>(after - batch.time_ns.begin()), time, false, 0, r});
  }
  std::ranges::stable_sort(pending_, {}, &Pending::before_event);
  while (at_ < pending_.size() && pending_[at_].before_event == 0) reach(pending_[at_++]);
  next_ = at_ < pending_.size() && batch_size_ != 0 ? pending_[at_].before_event - 1 : SIZE_MAX;
}

void MomentGatherer::after_event() {
  const size_t index = next_;
  while (at_ < pending_.size() && pending_[at_].before_event == index + 1) reach(pending_[at_++]);
  next_ = at_ < pending_.size() ? pending_[at_].before_event - 1 : SIZE_MAX;
}

void MomentGatherer::finish(uint64_t last_ns) {
  if (!tables_) return;
  first_event_ += batch_size_;
  for (size_t r = 0; r < wanted_.size(); ++r) {
    const uint64_t time = start_ns_ + wanted_[r].value;
    if (wanted_[r].kind != MomentRequest::kTime || is_time_over_[r] || time > last_ns) continue;
    reach({0, time, false, 0, r});
  }
}

void MomentGatherer::reach(const Pending& what) {
  if (what.is_step) return end_step(what);
  const size_t devices = of_sums_ ? state_.devices().size() : tables_->devices.size();
  for (size_t d = 0; d < devices; ++d) look(what.value, static_cast<uint16_t>(d), what);
}

void MomentGatherer::end_step(const Pending& what) {
  if (of_sums_) {
    if (what.process < state_.devices().size())
      end_step_of(static_cast<uint16_t>(what.process), what);
    return;
  }
  for (size_t d = 0; d < tables_->devices.size(); ++d) {
    if (tables_->devices[d].process == what.process) end_step_of(static_cast<uint16_t>(d), what);
  }
}

void MomentGatherer::end_step_of(uint16_t device, const Pending& what) {
  const size_t d = device;
  const uint64_t live = d < state_.devices().size() ? state_.devices()[d].live_bytes : 0;
  on_level(device, live);
  if (levels_.size() <= d) levels_.resize(d + 1);
  levels_[d].add({what.value, what.time_ns, live, within_[d].least_bytes, within_[d].most_bytes});
  within_[d] = {live, live};
  for (size_t r = 0; r < wanted_.size(); ++r) {
    if (wanted_[r].kind == MomentRequest::kStepEnd && wanted_[r].value == what.value)
      look(r, device, what);
  }
}

LiveMoment& MomentGatherer::moment(size_t request, uint16_t device) {
  std::vector<LiveMoment>& of_request = taken_[request];
  if (of_request.size() <= device) of_request.resize(size_t{device} + 1);
  return of_request[device];
}

/// A number that comes again, as where a loop begins anew, is the first one.
void MomentGatherer::look(size_t request, uint16_t device, const Pending& at) {
  LiveMoment& now = moment(request, device);
  if (now.is_reached) return;
  now.is_reached = true, now.time_ns = at.time_ns, now.event = first_event_ + at.before_event;
  if (device < state_.devices().size()) {
    const DeviceState& state = state_.devices()[device];
    now.live_bytes = state.live_bytes, now.live_count = state.live_count;
    now.holders = state_.holders_now(device);
    now.totals = totals_of(state);
  }
  if (categories_ != nullptr && categories_->is_active()) {
    categories_->on_moment(device, request, now.event);
  } else {
    now.why_no_categories = "the recording has no modules, phases or tensor roles";
  }
}

StepLevels MomentGatherer::take_levels(uint16_t device) {
  return device < levels_.size() ? std::move(levels_[device]) : StepLevels();
}

std::vector<LiveMoment> MomentGatherer::take_moments(uint16_t device) {
  std::vector<LiveMoment> out;
  for (size_t r = 0; r < wanted_.size(); ++r) {
    LiveMoment& now = out.emplace_back(std::move(moment(r, device)));
    if (!now.is_reached || !now.why_no_categories.empty()) continue;
    now.categories = categories_->at_moment(device, r);
    uint64_t sum = 0;
    for (const CategoryHolder& holder : now.categories) sum += holder.bytes;
    if (sum == now.live_bytes) continue;
    now.categories.clear();
    now.why_no_categories = "the moment is before the first remaining event";
  }
  return out;
}

}  // namespace gpumemprof
