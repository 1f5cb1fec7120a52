#include "analysis/categories.h"

#include <algorithm>
#include <tuple>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

constexpr uint8_t kWasSaved = 128;  // beside SavedFlags

}  // namespace

CategoryBytes DeviceCategories::bytes_at_peak() const {
  CategoryBytes sums{};
  for (const CategoryHolder& holder : at_peak) {
    sums[static_cast<size_t>(holder.category)] += static_cast<int64_t>(holder.bytes);
  }
  return sums;
}

void Categories::begin_batch(const EventBatch& batch, const LiveState& state) {
  batch_ = &batch;
  next_mark_ = 0;
  if (is_active_) return;
  bool has_labels = !batch.marks.empty();
  for (; !has_labels && frames_seen_ < tables_.stacks.frame_count(); ++frames_seen_) {
    const Frame& frame = tables_.stacks.frame(frames_seen_);
    has_labels = frame.line == 0 && is_torch_label(tables_.strings.get(frame.file));
  }
  if (has_labels) activate(state);
}

/// What is live by now was made in ways of which nothing more will be told.
void Categories::activate(const LiveState& state) {
  is_active_ = true;
  start_ns_ = last_ns_ = batch_->size() > 0 ? batch_->time_ns.front() : 0;
  devices_.resize(std::max(state.devices().size(), tables_.devices.size()));
  for (size_t d = 0; d < state.devices().size(); ++d) {
    for (const auto& [address, live] : state.devices()[d].blocks) {
      Block block{};
      block.size_bytes = live.size_bytes, block.time_ns = start_ns_;
      block.stack = live.stack, block.thread = live.thread;
      devices_[d].index.try_emplace(address, static_cast<uint32_t>(devices_[d].blocks.size()));
      devices_[d].blocks.push_back(block);
    }
  }
}

Categories::ThreadWork& Categories::thread(uint32_t index) {
  if (index >= threads_.size())
    threads_.resize(std::max<size_t>(index + 1, tables_.threads.size()));
  return threads_[index];
}

Categories::ProcessWork& Categories::process(uint32_t index) {
  if (index >= processes_.size()) processes_.resize(size_t{index} + 1);
  return processes_[index];
}

uint32_t Categories::process_of_thread(uint32_t thread) const {
  return thread < tables_.threads.size() ? tables_.threads[thread].process : 0;
}

/// A thread allocates for this work: what it did before has ended.
void Categories::enter(uint32_t index, const Attribution& work, uint32_t process_index) {
  ThreadWork& now = thread(index);
  const auto in_call = [](WorkPhase p) {
    return p == WorkPhase::kForward || p == WorkPhase::kEvaluation;
  };
  if (now.is_recomputing && !work.is_recomputed) ++now.recomputation;
  if (now.phase == WorkPhase::kBackward && work.phase != WorkPhase::kBackward) ++now.backward;
  // A closure that the step calls does not end it.
  if (now.is_in_step && !work.is_in_step) ++now.optimizer;
  if (!in_call(now.phase) && in_call(work.phase)) ++process(process_index).calls;
  now.phase = work.phase, now.is_recomputing = work.is_recomputed;
  now.is_in_step = work.is_in_step;
  if (now.is_listed) return;
  now.is_listed = true;
  if (process_index >= working_.size()) working_.resize(size_t{process_index} + 1);
  working_[process_index].push_back(index);
}

/// A step ends for all threads that have worked since the last one did.
void Categories::end_work(uint32_t process_index) {
  if (process_index >= working_.size()) return;
  for (const uint32_t t : working_[process_index]) {
    enter(t, {}, process_index);
    thread(t).is_listed = false;
    ++look_count_;
  }
  working_[process_index].clear();
}

/// Those that anything has been allocated on.
const std::vector<uint32_t>& Categories::devices_of(uint32_t process_index) {
  for (; devices_listed_ < std::min(devices_.size(), tables_.devices.size()); ++devices_listed_) {
    const uint32_t of = tables_.devices[devices_listed_].process;
    if (of >= devices_of_.size()) devices_of_.resize(size_t{of} + 1);
    devices_of_[of].push_back(static_cast<uint32_t>(devices_listed_));
  }
  static const std::vector<uint32_t> kNone;
  return process_index < devices_of_.size() ? devices_of_[process_index] : kNone;
}

void Categories::on_alloc(size_t i, uint16_t index, const DeviceState& state) {
  if (next_mark_ < batch_->marks.size()) take_marks(i);
  if (index >= devices_.size()) devices_.resize(size_t{index} + 1);
  OfDevice& device = devices_[index];
  device.process = index < tables_.devices.size() ? tables_.devices[index].process : 0;
  last_ns_ = batch_->time_ns[i];
  const uint32_t made_by = batch_->thread[i], stack = batch_->stack[i];
  const Attribution& work = attributions_.of(stack);
  enter(made_by, work, device.process);
  const ThreadWork& now = thread(made_by);
  const ProcessWork& all = process(device.process);
  Block block{};
  block.size_bytes = batch_->size_bytes[i], block.time_ns = last_ns_;
  block.event = batch_->first_event + i, block.moment = moment_count_;
  block.stack = stack, block.thread = made_by;
  block.backward = now.backward, block.optimizer = now.optimizer;
  block.recomputation = now.recomputation;
  block.steps = all.steps, block.calls = all.calls;
  if (work.phase == WorkPhase::kEvaluation) {
    Site& site = sites_[stack];
    if (site.last_bytes != 0 && site.last_call != all.calls) {
      site.grows = block.size_bytes > site.last_bytes;
    }
    site.last_bytes = block.size_bytes, site.last_call = all.calls;
  }
  if (work.phase == WorkPhase::kForward) {
    if (stack >= last_steps_.size())
      last_steps_.resize(std::max<size_t>(stack + 1, tables_.stacks.stack_count()));
    last_steps_[stack] = all.steps;
  }
  auto [number, is_new] = device.index.try_emplace(batch_->address[i], 0);
  if (!is_new) {  // its free was missed
    end_life(device, device.blocks[*number], state, i);
    device.blocks[*number] = block;
  } else if (!device.unused.empty()) {
    *number = device.unused.back();
    device.unused.pop_back();
    device.blocks[*number] = block;
  } else {
    *number = static_cast<uint32_t>(device.blocks.size());
    device.blocks.push_back(block);
  }
  if (state.peak_event == block.event && state.peak_epoch != device.peak.epoch) {
    device.peak = {state.peak_epoch, all.next_step, 0, stack, all.steps};
  }
}

void Categories::on_moment(uint16_t device, size_t number, uint64_t event) {
  if (device >= devices_.size()) devices_.resize(size_t{device} + 1);
  devices_[device].moments.push_back({number, event, {}});
}

/// Moments that the block does not outlive are not there yet.
void Categories::add_to_moments(OfDevice& device, const Block& block, size_t kind) {
  for (Moment& moment : device.moments) {
    if (block.event >= moment.event) continue;
    Sum& sum = moment.sums[{uint64_t{block.stack} << 8 | kind, block.name}];
    sum.bytes += block.size_bytes, ++sum.count;
  }
}

void Categories::on_free(size_t i, uint16_t index, const DeviceState& state) {
  if (next_mark_ < batch_->marks.size()) take_marks(i);
  last_ns_ = batch_->time_ns[i];
  if (index >= devices_.size()) return;
  OfDevice& device = devices_[index];
  uint32_t* number = device.index.find(batch_->address[i]);
  if (number == nullptr) return;
  end_life(device, device.blocks[*number], state, i);
  device.unused.push_back(*number);
  device.index.erase(number);
}

BlockLife Categories::life_of(const Block& block, uint32_t process_index) {
  const ThreadWork& now = thread(block.thread);
  const ProcessWork& all = process(process_index);
  BlockLife life;
  life.role = block.role;
  life.is_saved = block.saved & kWasSaved, life.is_output = block.saved & kSavedIsOutput;
  life.has_history = block.saved & kSavedHasHistory;
  life.steps_saved_in = block.steps_saved_in;
  life.steps = all.steps - block.steps, life.calls = all.calls - block.calls;
  // A step's end tells as well, where nothing is allocated after the last node.
  life.outlived_backward = now.backward != block.backward || life.steps > 0;
  life.outlived_optimizer = now.optimizer != block.optimizer || life.steps > 0;
  life.outlived_recomputation = now.recomputation != block.recomputation || life.steps > 0;
  if (auto site = sites_.find(block.stack); site != sites_.end()) {
    life.site_grows = site->second.grows;
  }
  life.is_made_again = block.stack < last_steps_.size() && last_steps_[block.stack] > block.steps;
  return life;
}

void Categories::end_life(OfDevice& device, const Block& block, const DeviceState& state,
                          size_t i) {
  BlockLife life = life_of(block, device.process);
  life.is_freed = true;
  life.is_freed_in_backward = thread(batch_->thread[i]).phase == WorkPhase::kBackward;
  const Category category = category_of(attributions_.of(block.stack), life);
  const size_t kind = static_cast<size_t>(category);
  device.timeline.add(kind, block.size_bytes, block.time_ns - std::min(start_ns_, block.time_ns),
                      last_ns_ - std::min(start_ns_, last_ns_));
  if (block.moment != moment_count_) {
    device.at_moments.add(kind, block.size_bytes, block.moment, moment_count_);
  }
  if (!device.moments.empty()) add_to_moments(device, block, kind);
  // Live at the peak: it had begun by then. A free is never the peak.
  if (block.event > state.peak_event) return;
  if (process(device.process).steps == device.peak.steps) {
    device.peak.freed_in_step_bytes += block.size_bytes;
  }
  Sum& sum = device.at_peak[{uint64_t{block.stack} << 8 | kind, block.name}];
  if (sum.epoch != state.peak_epoch) sum = {0, 0, state.peak_epoch};
  sum.bytes += block.size_bytes, ++sum.count;
}

void Categories::take_marks(size_t before_event) {
  for (;
       next_mark_ < batch_->marks.size() && batch_->marks[next_mark_].before_event <= before_event;
       ++next_mark_) {
    take(batch_->marks[next_mark_]);
  }
}

void Categories::end_batch() {
  if (is_active_) take_marks(SIZE_MAX);
}

void Categories::take(const Mark& mark) {
  const uint32_t of = process_of_thread(mark.thread);
  CategoryMoment moment{
      .process = of, .text = mark.text, .value = mark.value, .time_ns = mark.time_ns};
  switch (mark.kind) {
    case MarkKind::kSaved:
    case MarkKind::kRole:
      return take_storage(mark, of);
    case MarkKind::kStep:
      ++process(of).steps;
      process(of).next_step = mark.value + 1;
      end_work(of);
      return add_moment(moment);
    case MarkKind::kPhaseBegin:
      moment.kind = CategoryMoment::kPhaseBegin;
      open_phases_[{of, mark.address}] = mark.text;
      return add_moment(moment);
    case MarkKind::kPhaseEnd: {
      moment.kind = CategoryMoment::kPhaseEnd;
      const auto open = open_phases_.find({of, mark.address});
      if (open != open_phases_.end()) {
        moment.text = open->second;
        open_phases_.erase(open);
      }
      return add_moment(moment);
    }
    default:
      return;
  }
}

/// When there are too many, every other one is left out.
void Categories::add_moment(CategoryMoment moment) {
  moment.event = batch_->first_event +
                 std::min<size_t>(batch_->size(), batch_->marks[next_mark_].before_event);
  const uint64_t number = moment_count_++;
  if (number >> moment_shift_ >= kMostMoments) {
    for (size_t i = 0; 2 * i < moments_.size(); ++i) moments_[i] = moments_[2 * i];
    moments_.resize((moments_.size() + 1) / 2);
    ++moment_shift_;
  }
  if ((number & ((uint64_t{1} << moment_shift_) - 1)) == 0) moments_.push_back(moment);
}

void Categories::take_storage(const Mark& mark, uint32_t of) {
  for (const uint32_t d : devices_of(of)) {
    ++look_count_;
    const uint32_t* number = devices_[d].index.find(mark.address);
    if (number == nullptr) continue;
    Block& block = devices_[d].blocks[*number];
    if (mark.kind == MarkKind::kRole) {
      block.role = static_cast<uint8_t>(std::min<uint64_t>(mark.value, UINT8_MAX));
      block.name = mark.text;
      return;
    }
    const uint32_t step = process(of).steps + 1;
    if (block.last_step_saved != step) ++block.steps_saved_in;
    block.last_step_saved = step;
    block.saved |= static_cast<uint8_t>(kWasSaved | (mark.value & 3));
    return;
  }
}

std::vector<CategoryHolder> Categories::holders(const Sums& sums, uint64_t epoch) {
  std::vector<CategoryHolder> list;
  for (const auto& [key, sum] : sums) {
    if (sum.epoch != epoch || sum.count == 0) continue;
    list.push_back({static_cast<uint32_t>(key.first >> 8), static_cast<Category>(key.first & 255),
                    key.second, sum.bytes, sum.count});
  }
  std::sort(list.begin(), list.end(), [](const CategoryHolder& a, const CategoryHolder& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return std::tie(a.stack, a.category, a.name) < std::tie(b.stack, b.category, b.name);
  });
  return list;
}

std::vector<CategoryHolder> Categories::at_moment(uint16_t device, size_t number) const {
  if (device >= devices_.size()) return {};
  for (const Moment& moment : devices_[device].moments) {
    if (moment.number == number) return holders(moment.sums, 0);
  }
  return {};
}

DeviceCategories Categories::finish(uint16_t index, const DeviceState& state) {
  DeviceCategories out;
  if (!is_active_ || index >= devices_.size()) {
    out.why_not = "the recording says nothing of modules, phases and what tensors are";
    return out;
  }
  OfDevice& device = devices_[index];
  const uint64_t end = last_ns_ - start_ns_;
  Sums at_end;
  device.index.for_each([&](uint32_t number) {
    const Block& block = device.blocks[number];
    const BlockLife life = life_of(block, device.process);
    const size_t kind = static_cast<size_t>(category_of(attributions_.of(block.stack), life));
    device.timeline.add_open(kind, block.size_bytes,
                             block.time_ns - std::min(start_ns_, block.time_ns));
    device.at_moments.add_open(kind, block.size_bytes, block.moment);
    const Key key{uint64_t{block.stack} << 8 | kind, block.name};
    Sum& last = at_end[key];
    last.bytes += block.size_bytes, ++last.count;
    if (!device.moments.empty()) add_to_moments(device, block, kind);
    if (block.event > state.peak_event) return;
    Sum& sum = device.at_peak[key];
    if (sum.epoch != state.peak_epoch) sum = {0, 0, state.peak_epoch};
    sum.bytes += block.size_bytes, ++sum.count;
  });
  out.at_peak = holders(device.at_peak, state.peak_epoch);
  out.at_end = holders(at_end, 0);
  uint64_t sum = 0;
  for (const CategoryHolder& holder : out.at_peak) sum += holder.bytes;
  out.is_known = sum == state.peak_bytes;
  if (out.is_known && device.peak.epoch == state.peak_epoch) {
    const ProcessWork& all = process(device.process);
    out.peak = {.is_known = true,
                .stack = device.peak.stack,
                .step = device.peak.step,
                .steps = all.steps,
                .freed_in_step_bytes = device.peak.freed_in_step_bytes,
                .step_ended = all.steps > device.peak.steps};
  }
  if (!out.is_known) {
    out.at_peak.clear();
    out.why_not = "the peak was before the first event that is left";
  }
  out.start_ns = start_ns_, out.sample_ns = device.timeline.width();
  out.timeline = device.timeline.samples(end);
  out.sample_ns = device.timeline.width();
  if (moment_count_ > 0) {
    // Moments may be thinned out more than the series is, never less.
    const size_t stride = (uint64_t{1} << moment_shift_) / device.at_moments.width();
    const std::vector<CategoryBytes> all = device.at_moments.samples(moment_count_ - 1);
    for (size_t i = 0; i < all.size() && out.at_moments.size() < moments_.size(); i += stride) {
      out.at_moments.push_back(all[i]);
    }
  }
  return out;
}

}  // namespace gpumemprof
