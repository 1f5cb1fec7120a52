#include "analysis/categories/categories.h"

#include <algorithm>

#include "analysis/categories/torch_frames.h"
#include "trace/event.h"
#include "trace/label_frames.h"

namespace gpumemprof {

void Categories::begin_batch(const EventBatch& batch, const LiveState& state) {
  batch_ = &batch, state_ = &state;
  next_mark_ = 0;
  if (is_active_) return;
  // The program's end says nothing of memory that came before.
  const auto tells = [&](const Mark& mark) { return batches_ == 0 || !mark.is_program_end(); };
  bool has_labels = std::ranges::any_of(batch.marks, tells);
  for (; !has_labels && frames_seen_ < tables_.stacks.frame_count(); ++frames_seen_) {
    const Frame& frame = tables_.stacks.frame(frames_seen_);
    has_labels = frame.line == 0 && is_torch_label(tables_.strings.get(frame.file));
  }
  if (has_labels) activate(state);
  ++batches_;
}

/// Blocks that are already live get no attribution.
void Categories::activate(const LiveState& state) {
  is_active_ = true, is_late_ = batches_ != 0;
  start_ns_ = last_ns_ = batch_->size() > 0 ? batch_->time_ns.front() : 0;
  devices_.resize(std::max(state.devices().size(), tables_.devices.size()));
  for (size_t d = 0; d < state.devices().size(); ++d) {
    const LiveBlocks& blocks = state.devices()[d].blocks;
    blocks.each_number([&](uint64_t address, uint32_t number) {
      const LiveBlock& live = *blocks.find(address);
      Block block{};
      block.is_live = true;
      block.size_bytes = live.size_bytes, block.time_ns = start_ns_;
      block.stack = live.stack, block.thread = live.thread;
      if (keeper_) block.kept_as = keeper_->block_of(static_cast<uint16_t>(d), number);
      devices_[d].index.try_emplace(address, static_cast<uint32_t>(devices_[d].blocks.size()));
      devices_[d].blocks.push_back(block);
    });
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
  if (now.is_recomputing && !work.is_recomputed) ++now.recomputation;
  if (now.phase == WorkPhase::kBackward && work.phase != WorkPhase::kBackward) {
    ++now.backward, ++process(process_index).passes;
  }
  // A closure that the step calls does not end it.
  if (now.is_in_step && !work.is_in_step) ++now.optimizer;
  if (!is_in_call(now.phase) && is_in_call(work.phase)) ++process(process_index).calls;
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

/// Those with tensors that anything has been allocated on. A segment of the driver's begins where its
/// first tensor does.
const std::vector<uint32_t>& Categories::devices_of(uint32_t process_index) {
  for (; devices_listed_ < std::min(devices_.size(), tables_.devices.size()); ++devices_listed_) {
    const Device& device = tables_.devices[devices_listed_];
    if (device.layer == Layer::kDriver || is_host_blocks(device)) continue;
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
  if (!device.freed_since_alloc.empty()) take_freed(index, state.peak_epoch);
  last_ns_ = batch_->time_ns[i];
  const uint32_t made_by = batch_->thread[i], stack = batch_->stack[i];
  const Attribution& work = attributions_.of(stack);
  if (ThreadWork& before = thread(made_by); !before.frees.empty())
    take_call_frees(before.frees, is_in_call(before.phase) && is_in_call(work.phase));
  enter(made_by, work, device.process);
  const ThreadWork& now = thread(made_by);
  const ProcessWork& all = process(device.process);
  Block block{};
  block.is_live = true;
  block.size_bytes = batch_->size_bytes[i], block.time_ns = last_ns_;
  block.event = block.made_at = batch_->first_event + i, block.moment = moment_count_;
  block.stack = stack, block.thread = made_by;
  block.backward = now.backward, block.optimizer = now.optimizer;
  block.recomputation = now.recomputation;
  block.steps = all.steps, block.calls = all.calls, block.looks = all.looks;
  block.is_before_calls = all.calls == all.calls_before_step;
  const uint64_t number = state.actions[static_cast<size_t>(Action::kAlloc)] - 1;
  if (!rules_.empty()) take_rule(index, batch_->address[i], number, &block);
  if (keeper_) block.kept_as = keeper_->made_by(index, number);
  if (all.looks > 0) {
    if (auto told = all.roles.find(batch_->address[i]); told != all.roles.end()) {
      block.address_role = told->second.role, block.address_name = told->second.name;
    }
  }
  if (work.phase == WorkPhase::kEvaluation) {
    Site& site = sites_[stack];
    if (site.allocate(block.size_bytes, all.calls)) {
      site.grows = site.rises > 0 && site.live > 0;
      site.keeps |= site.live > site.of_last_call;
      if (site.live > 0)
        process(device.process).leaving_modules[without_numbers(work.module)].insert(work.module);
      site.of_last_call = 0;
    }
    ++site.of_last_call, ++site.live;
  }
  if (work.phase == WorkPhase::kForward || work.phase == WorkPhase::kNone) {
    if (stack >= site_steps_.size())
      site_steps_.resize(std::max<size_t>(stack + 1, tables_.stacks.stack_count()));
    site_steps_[stack].first = std::min(site_steps_[stack].first, all.steps);
    site_steps_[stack].last = all.steps;
  }
  if (is_workspace_size(block.size_bytes) && index < tables_.devices.size() &&
      tables_.devices[index].type == 1) {
    ++workspace_sites_[{stack, block.size_bytes}];
  }
  auto [place, is_new] = device.index.try_emplace(batch_->address[i], 0);
  if (!is_new) {  // its free was missed
    end_life(device, {index, *place, device.blocks[*place].made_at}, state, i);
    device.blocks[*place] = block;
  } else if (!device.unused.empty()) {
    *place = device.unused.back();
    device.unused.pop_back();
    device.blocks[*place] = block;
  } else {
    *place = static_cast<uint32_t>(device.blocks.size());
    device.blocks.push_back(block);
  }
  last_frees_.on_alloc(device.process);  // a block whose free was missed is none of the last frees
  if (state.peak_event == block.event && state.peak_epoch != device.peak.epoch) {
    device.peak = {state.peak_epoch, all.next_step, 0, stack, all.steps};
  }
}

void Categories::on_moment(uint16_t device, size_t number, uint64_t event) {
  if (batch_ != nullptr && event >= batch_->first_event) take_marks(event - batch_->first_event);
  if (device >= devices_.size()) devices_.resize(size_t{device} + 1);
  devices_[device].moments.push_back({number, event, {}});
}

/// Moments that the block does not outlive are not there yet.
void Categories::add_to_moments(OfDevice& device, const Block& block, const KnownAs& known,
                                size_t moments) {
  for (size_t m = block.first_moment; m < moments; ++m) {
    Moment& moment = device.moments[m];
    if (block.made_at >= moment.event) continue;
    moment.sums.add(known, block.stack, block.size_bytes);
  }
}

/// What the program told goes before what rules conclude.
KnownAs Categories::known(const Block& block, const Verdict& verdict, uint32_t of) {
  if (verdict.category == Category::kUnknown && block.rule != 0)
    return KnownAs::by_rule(static_cast<SnapshotRule>(block.rule), block.rule_phase);
  const bool was_state = block.was_state && verdict.category == Category::kOptimizerState;
  return KnownAs::told(verdict, was_state ? block.name : role_of(block, of).name);
}

/// `number`: of the device's allocations. A file that grew since the rules saw it may have others.
void Categories::take_rule(uint16_t device, uint64_t address, uint64_t number, Block* block) const {
  const auto rules = rules_.find(device);
  if (rules == rules_.end() || number >= rules->second->size()) return;
  const RuledBlock& ruled = (*rules->second)[number];
  if (ruled.place != RuledBlock::place_of(address)) return;
  block->rule = ruled.rule, block->rule_phase = ruled.phase;
}

void Categories::on_free(size_t i, uint16_t index, const DeviceState& state) {
  if (next_mark_ < batch_->marks.size()) take_marks(i);
  last_ns_ = batch_->time_ns[i];
  if (index >= devices_.size()) return;
  OfDevice& device = devices_[index];
  uint32_t* number = device.index.find(batch_->address[i]);
  if (number == nullptr) return;
  end_life(device, {index, *number, device.blocks[*number].made_at}, state, i);
  device.blocks[*number].is_live = false;
  device.unused.push_back(*number);
  device.index.erase(number);
}

BlockLife Categories::life_of(const Block& block, const CopyLinks::Block& place,
                              uint32_t process_index) {
  const ThreadWork& now = thread(block.thread);
  const ProcessWork& all = process(process_index);
  BlockLife life;
  life.role = role_of(block, process_index).role;
  life.has_been_looked_at = all.looks > block.looks;
  life.is_weight_copy = is_weight_copy(block, place, 0);
  life.is_saved = block.saved & kWasSaved, life.is_output = block.saved & kSavedIsOutput;
  life.has_history = block.saved & kSavedHasHistory;
  life.is_constant = block.saved & kSavedIsConstant;
  life.passes_saved_in = block.passes_saved_in;
  life.steps = all.steps - block.steps, life.calls = all.calls - block.calls;
  life.is_before_calls = block.is_before_calls, life.was_state = block.was_state;
  // A step's end tells as well, where nothing is allocated after the last node.
  life.outlived_backward = now.backward != block.backward || life.steps > 0;
  life.outlived_optimizer = now.optimizer != block.optimizer || life.steps > 0;
  life.outlived_recomputation = now.recomputation != block.recomputation || life.steps > 0;
  if (auto site = sites_.find(block.stack); site != sites_.end()) {
    life.site_grows = site->second.grows, life.site_keeps = site->second.keeps;
    life.site_replaces = site->second.replaces();
  }
  life.may_be_state = life.calls == 1 && all.has_state(attributions_.of(block.stack).module);
  life.is_told_cache = told_caches_.contains(block.stack);
  if (block.stack < site_steps_.size()) {
    const SiteSteps& site = site_steps_[block.stack];
    life.is_made_again = site.first < block.steps || site.last > block.steps;
  }
  if (is_workspace_size(block.size_bytes)) {
    const auto made = workspace_sites_.find({block.stack, block.size_bytes});
    life.may_be_workspace = made != workspace_sites_.end() && made->second == 1;
  }
  return life;
}

bool Categories::is_cache(uint32_t stack) const {
  const auto site = sites_.find(stack);
  return site != sites_.end() && site->second.is_cache();
}

void Categories::end_life(OfDevice& device, const CopyLinks::Block& place, const DeviceState& state,
                          size_t i) {
  const Block& block = device.blocks[place.number];
  BlockLife life = life_of(block, place, device.process);
  life.is_freed = !process(device.process).has_ended;
  life.is_freed_in_backward = thread(batch_->thread[i]).phase == WorkPhase::kBackward;
  CallFrees& frees = thread(batch_->thread[i]).frees;
  const bool may_be_in_call = is_in_call(thread(batch_->thread[i]).phase);
  const Verdict verdict = verdict_of(attributions_.of(block.stack), life);
  life.is_freed_in_call = may_be_in_call;
  const Verdict in_call =
      may_be_in_call ? verdict_of(attributions_.of(block.stack), life) : verdict;
  // Live at the peak: it had begun by then. A free is never the peak.
  const PartEnd end = part_end(device, block.event <= state.peak_event, state.peak_epoch);
  // What a program keeps to its last allocation is freed before its leaks have a name.
  const bool is_later_told = verdict.category == Category::kUnknown;
  const bool is_held = in_call != verdict;
  const KnownAs is = is_later_told || is_held ? known(block, verdict, device.process)
                                              : end_part(device, block, verdict, end);
  if (is_held)
    frees.held.push_back({static_cast<uint16_t>(place.device), {block, verdict, end}, in_call});
  else if (is_later_told)
    device.freed_since_alloc.push_back({block, verdict, end});
  else
    keep(place.device, block, is, BlockKeeper::kToItsEnd);
  last_frees_.on_free(place.device, device.process, {is, block.stack, block.size_bytes});
  if (block.event <= state.peak_event && process(device.process).steps == device.peak.steps) {
    device.peak.freed_in_step_bytes += block.size_bytes;
  }
  end_links(block, place);
  if (auto found = sites_.find(block.stack); found != sites_.end() && found->second.live > 0) {
    Site& site = found->second;
    --site.live;
    const bool is_for_more = site.last_bytes > block.size_bytes;
    // Of sessions whose calls take turns only the call that frees it shows what it made way for.
    const bool is_of_this_call = may_be_in_call && site.last_call == process(device.process).calls;
    if (life.is_freed && life.calls == 1) {
      site.let_go(is_for_more);
    } else if (life.is_freed && life.calls > 1 && is_of_this_call) {
      frees.outlived.push_back({block.stack, is_for_more});
    }
  }
}

/// The block, or the part of its life that ends now, had this category.
KnownAs Categories::end_part(OfDevice& device, const Block& block, const Verdict& verdict,
                             const PartEnd& end) {
  const KnownAs is = known(block, verdict, device.process);
  const size_t category = static_cast<size_t>(is.category());
  device.timeline.add(category, block.size_bytes,
                      block.time_ns - std::min(start_ns_, block.time_ns),
                      end.time_ns - std::min(start_ns_, end.time_ns));
  if (block.moment != end.moment) {
    device.at_moments.add(category, block.size_bytes, block.moment, end.moment);
  }
  add_to_moments(device, block, is, end.moments);
  if (end.is_at_peak) device.at_peak.add(is, block.stack, block.size_bytes, end.peak_epoch);
  return is;
}

void Categories::take_freed(uint16_t index, uint64_t peak_epoch) {
  OfDevice& device = devices_[index];
  for (Freed& freed : device.freed_since_alloc) {
    if (told_caches_.contains(freed.block.stack)) freed.verdict = {Category::kKvCache};
    take(index, freed, peak_epoch);
  }
  device.freed_since_alloc.clear();
}

void Categories::take(uint16_t index, Freed& freed, uint64_t peak_epoch) {
  freed.end.is_at_peak &= freed.end.peak_epoch == peak_epoch;  // else a higher one came after it
  const KnownAs is = end_part(devices_[index], freed.block, freed.verdict, freed.end);
  keep(index, freed.block, is, BlockKeeper::kToItsEnd);
}

/// Their thread allocates again, or never.
void Categories::take_call_frees(CallFrees& frees, bool call_goes_on) {
  for (CallFrees::Held& held : frees.held) {
    if (call_goes_on) held.freed.verdict = held.in_call;
    take(held.device, held.freed, state_->devices()[held.device].peak_epoch);
  }
  for (const auto& [stack, is_for_more] : frees.outlived) {
    if (call_goes_on) sites_[stack].let_go(is_for_more);
  }
  frees.held.clear(), frees.outlived.clear();
}

void Categories::end_batch() {
  if (is_active_) take_marks(SIZE_MAX);
  batch_ = nullptr;
}

std::vector<CategoryHolder> Categories::at_moment(uint16_t device, size_t number) const {
  if (device >= devices_.size()) return {};
  for (const Moment& moment : devices_[device].moments) {
    if (moment.number == number) return moment.sums.holders();
  }
  return {};
}

/// Of a live block.
KnownAs Categories::known_now(uint16_t index, uint32_t number) {
  const OfDevice& device = devices_[index];
  const Block& block = device.blocks[number];
  const BlockLife life = life_of(block, {index, number, block.made_at}, device.process);
  return known(block, verdict_of(attributions_.of(block.stack), life), device.process);
}

void Categories::each_live(
    uint16_t index, const std::function<void(uint64_t address, const CategoryHolder&)>& see) {
  if (index >= devices_.size()) return;
  const OfDevice& device = devices_[index];
  device.index.for_each([&](uint64_t address, uint32_t number) {
    const Block& block = device.blocks[number];
    CategoryHolder holder = known_now(index, number).holder(block.stack);
    holder.bytes = block.size_bytes, holder.count = 1;
    see(address, holder);
  });
}

DeviceCategories Categories::finish(uint16_t index, const DeviceState& state) {
  DeviceCategories out;
  if (!is_active_ || index >= devices_.size()) {
    out.why_not = "the recording has no modules, phases or tensor roles";
    return out;
  }
  OfDevice& device = devices_[index];
  const uint64_t end = last_ns_ - start_ns_;
  for (ThreadWork& thread : threads_) take_call_frees(thread.frees, false);
  take_freed(index, state.peak_epoch);
  HolderSums at_end, before_exit;
  for (const FreedBlock& block : last_frees_.of(index, device.process)) {
    const bool is_cache =
        block.is.category() == Category::kUnknown && told_caches_.contains(block.stack);
    before_exit.add(is_cache ? KnownAs::told({Category::kKvCache}, 0) : block.is, block.stack,
                    block.size_bytes);
  }
  device.index.for_each([&](uint64_t, uint32_t number) {
    const Block& block = device.blocks[number];
    const KnownAs is = known_now(index, number);
    const size_t category = static_cast<size_t>(is.category());
    device.timeline.add_open(category, block.size_bytes,
                             block.time_ns - std::min(start_ns_, block.time_ns));
    device.at_moments.add_open(category, block.size_bytes, block.moment);
    keep(index, block, is, BlockKeeper::kToItsEnd);
    for (HolderSums* sums : {&at_end, &before_exit}) sums->add(is, block.stack, block.size_bytes);
    add_to_moments(device, block, is, device.moments.size());
    if (block.event <= state.peak_event)
      device.at_peak.add(is, block.stack, block.size_bytes, state.peak_epoch);
  });
  out.at_peak = device.at_peak.holders(state.peak_epoch);
  out.at_end = at_end.holders(), out.before_exit = before_exit.holders();
  out.is_known = sum_of_bytes(out.at_peak) == state.peak_bytes;
  out.has_names = process(device.process).has_names;
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
    out.why_not = is_late_ ? "it was before the first module, phase or tensor role was told"
                           : "the peak was before the first remaining event";
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
