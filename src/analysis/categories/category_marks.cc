// Categories: what the program's marks say of blocks.
#include <algorithm>

#include "analysis/categories/categories.h"

namespace gpumemprof {
namespace {

constexpr int kDeepestCopies = 4;  // copies of copies
constexpr uint64_t kSavedFlags = kSavedIsOutput | kSavedHasHistory | kSavedIsConstant;

/// All of one storage, perhaps in a type of another size.
bool is_whole_copy(uint64_t from_bytes, uint64_t to_bytes) {
  const uint64_t less = std::min(from_bytes, to_bytes), more = std::max(from_bytes, to_bytes);
  return less == more || (less != 0 && (more == 2 * less || more == 4 * less || more == 8 * less));
}

}  // namespace

void Categories::take_marks(size_t before_event) {
  for (;
       next_mark_ < batch_->marks.size() && batch_->marks[next_mark_].before_event <= before_event;
       ++next_mark_) {
    take(batch_->marks[next_mark_]);
  }
}

void Categories::take(const Mark& mark) {
  const uint32_t of = process_of_thread(mark.thread);
  if (mark.kind == MarkKind::kCopied) return take_copy(mark, of);
  CategoryMoment moment{
      .process = of, .text = mark.text, .value = mark.value, .time_ns = mark.time_ns};
  switch (mark.kind) {
    case MarkKind::kSaved:
      return take_saved(mark, of);
    case MarkKind::kRole:
      return take_role(mark, of);
    case MarkKind::kStep:
      ++process(of).steps, ++process(of).passes;
      process(of).next_step = mark.value + 1;
      process(of).calls_before_step = process(of).calls;
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

Categories::Block* Categories::block_at(uint64_t address, uint32_t of, CopyLinks::Block* place) {
  for (const uint32_t d : devices_of(of)) {
    ++look_count_;
    const uint32_t* number = devices_[d].index.find(address);
    if (number == nullptr) continue;
    Block& block = devices_[d].blocks[*number];
    *place = {d, *number, block.made_at};
    return &block;
  }
  return nullptr;
}

/// Null where it has been freed.
Categories::Block* Categories::block_at(const CopyLinks::Block& place) {
  Block& block = devices_[place.device].blocks[place.number];
  return block.is_live && block.made_at == place.event ? &block : nullptr;
}

/// What was told of it, or of its address before it was made if a look has found that to hold.
Categories::ToldRole Categories::role_of(const Block& block, uint32_t of) {
  if (block.role != 0) return {block.name, block.role};
  if (block.address_role == 0 || process(of).looks <= block.looks) return {};
  return {block.address_name, block.address_role};
}

void Categories::take_saved(const Mark& mark, uint32_t of) {
  CopyLinks::Block place;
  Block* block = block_at(mark.address, of, &place);
  if (block == nullptr) return;
  if (block->stack >= is_saved_.size()) {
    is_saved_.resize(std::max<size_t>(block->stack + 1, tables_.stacks.stack_count()));
    is_saved_again_.resize(is_saved_.size());
  }
  is_saved_[block->stack] = true;
  const uint32_t pass = process(of).passes + 1;
  if (block->last_pass_saved != pass) ++block->passes_saved_in;
  block->last_pass_saved = pass;
  if (block->passes_saved_in > kLastsForSteps) is_saved_again_[block->stack] = true;
  block->saved |= static_cast<uint8_t>(kWasSaved | (mark.value & kSavedFlags));
}

void Categories::take_role(const Mark& mark, uint32_t of) {
  if (mark.is_of_collective()) return;
  ProcessWork& all = process(of);
  all.has_names = true;
  if (mark.address == 0) {
    if (mark.value == kRolesHold) ++all.looks;
    if (mark.is_program_end()) all.has_ended = true;
    return;
  }
  const auto role = static_cast<uint8_t>(std::min<uint64_t>(mark.value, UINT8_MAX));
  if (role == 0) {
    all.roles.erase(mark.address);
  } else {
    all.roles[mark.address] = {mark.text, role};
  }
  CopyLinks::Block place;
  Block* block = block_at(mark.address, of, &place);
  if (block == nullptr) return;
  if (role == static_cast<uint8_t>(StorageRole::kGradient) && mark.text != 0)
    gradient_names_[block->stack].insert(mark.text);
  const auto [name_before, before] = role_of(*block, of);
  // What was there at a look without a role was none: it has become one. But the parts of a model
  // that was called late were parts of it before.
  const bool is_late = attributions_.of(block->stack).is_in_setup && block->event == block->made_at;
  const bool was_none = before == 0 && all.looks > block->looks && !is_late;
  if (all.looks > 0 && before != role && (before != 0 || was_none)) begin_part(place, *block);
  const bool was_state = before == static_cast<uint8_t>(StorageRole::kOptimizerState);
  block->role = role, block->name = mark.text, block->address_role = 0;
  if (role == 0 && was_state) block->was_state = true, block->name = name_before;
}

/// What follows of the block's life is another category's.
void Categories::begin_part(const CopyLinks::Block& place, Block& block) {
  OfDevice& device = devices_[place.device];
  const uint64_t now = batch_->first_event +
                       std::min<size_t>(batch_->size(), batch_->marks[next_mark_].before_event);
  const Verdict verdict =
      verdict_of(attributions_.of(block.stack), life_of(block, place, device.process));
  // The state may be that after the next event already, whose peak is the next part's.
  uint64_t peak_event = 0, peak_epoch = 0;
  if (place.device < state_->devices().size()) {
    const DeviceState& state = state_->devices()[place.device];
    peak_event = state.peak_event, peak_epoch = state.peak_epoch;
  }
  const PartEnd end = part_end(device, block.event <= peak_event && peak_event < now, peak_epoch);
  keep(place.device, block, end_part(device, block, verdict, end), now);
  block.event = now, block.time_ns = last_ns_, block.moment = moment_count_;
  block.first_moment = static_cast<uint32_t>(device.moments.size());
}

/// Tells only of what was made outside of models: what a call copies for itself is none's copy.
void Categories::take_copy(const Mark& mark, uint32_t of) {
  CopyLinks::Block to_place, from_place;
  const Block* to = block_at(mark.address, of, &to_place);
  const Block* from = to ? block_at(mark.value, of, &from_place) : nullptr;
  if (from == nullptr || !is_whole_copy(from->size_bytes, to->size_bytes)) return;
  const auto is_outside = [&](const Block* block) {
    const WorkPhase phase = attributions_.of(block->stack).phase;
    return phase != WorkPhase::kForward && phase != WorkPhase::kEvaluation &&
           phase != WorkPhase::kBackward;
  };
  if (is_outside(to)) copies_.add(to_place, from_place, CopyLinks::kSource);
  if (is_outside(from)) copies_.add(from_place, to_place, CopyLinks::kTarget);
}

/// Whether such a neighbour makes a block a copy of weights: what was copied from a buffer, or from
/// another copy, is one, what was copied into them is not.
bool Categories::is_proof(const Block& other, const CopyLinks::Block& place, CopyLinks::Kind kind,
                          int depth) {
  const auto role = static_cast<StorageRole>(role_of(other, devices_[place.device].process).role);
  if (role == StorageRole::kParameter || kind != CopyLinks::kSource)
    return role == StorageRole::kParameter;
  return role == StorageRole::kBuffer ||
         (role == StorageRole{kNoRole} && is_weight_copy(other, place, depth));
}

bool Categories::is_weight_copy(const Block& block, const CopyLinks::Block& place, int depth) {
  if (block.is_weight_copy || copies_.empty()) return block.is_weight_copy;
  const std::vector<CopyLinks::Link>* links = copies_.of(place);
  if (links == nullptr || depth >= kDeepestCopies) return false;
  return std::ranges::any_of(*links, [&](const CopyLinks::Link& link) {
    if (link.kind == CopyLinks::kWatcher) return false;
    const Block* other = block_at(link.other);
    return other != nullptr && is_proof(*other, link.other, link.kind, depth + 1);
  });
}

/// Those that were copied from it, or into it, remember what it was.
void Categories::end_links(const Block& block, const CopyLinks::Block& place) {
  if (copies_.empty()) return;
  const std::vector<CopyLinks::Link>* links = copies_.of(place);
  if (links == nullptr) return;
  for (const CopyLinks::Link& link : *links) {
    Block* watcher = link.kind == CopyLinks::kWatcher ? block_at(link.other) : nullptr;
    const std::vector<CopyLinks::Link>* back = watcher ? copies_.of(link.other) : nullptr;
    if (back == nullptr || watcher->is_weight_copy) continue;
    for (const CopyLinks::Link& to : *back) {
      if (to.other == place) watcher->is_weight_copy |= is_proof(block, place, to.kind, 0);
    }
  }
  copies_.forget(place);
}

}  // namespace gpumemprof
