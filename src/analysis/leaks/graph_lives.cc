#include "analysis/leaks/graph_lives.h"

#include <algorithm>
#include <vector>

#include "analysis/categories/attribution.h"

namespace gpumemprof {
namespace {

struct SavedBlock {
  uint64_t size_bytes = 0, backward_passes = 0;
  uint32_t stack = 0;
  // Seen: autograd saved it; told: a parameter or the like.
  bool is_saved = false, is_seen = false, is_told = false;
};

class GraphLivesGatherer {
 public:
  explicit GraphLivesGatherer(const Tables& tables) : tables_(tables), attributions_(tables) {}

  void take(const EventBatch& batch) {
    size_t mark = 0;
    for (size_t i = 0; i <= batch.size(); ++i) {
      for (;
           mark < batch.marks.size() && (i == batch.size() || batch.marks[mark].before_event <= i);
           ++mark)
        take_mark(batch.marks[mark]);
      if (i == batch.size()) break;
      const uint64_t key = key_of(batch.device[i], batch.address[i]);
      if (batch.action[i] == Action::kAlloc)
        allocate(batch, i, key);
      else if (is_free(batch.action[i]))
        free(key, batch.thread[i]);
    }
  }

  GraphEvidence evidence;

 private:
  /// Addresses of different devices may be equal; user space has 47 bits of them.
  static uint64_t key_of(uint16_t device, uint64_t address) {
    return address ^ (uint64_t{device} << 48);
  }

  /// A snapshot's events name no thread (UINT32_MAX): theirs is the first.
  static uint32_t slot_of(uint32_t thread) { return thread + 1; }

  void enter(uint32_t slot, WorkPhase phase) {
    if (slot >= phases_.size()) phases_.resize(size_t{slot} + 1);
    if (phases_[slot] == WorkPhase::kBackward && phase != WorkPhase::kBackward)
      ++evidence.backward_passes;
    phases_[slot] = phase;
  }

  void allocate(const EventBatch& batch, size_t i, uint64_t key) {
    const Attribution& work = attributions_.of(batch.stack[i]);
    enter(slot_of(batch.thread[i]), work.phase);
    StackSizes& sizes = evidence.allocated[batch.stack[i]];
    ++sizes.count;
    const uint64_t pass = evidence.backward_passes + 1;
    if (sizes.last_pass != 0)
      sizes.longest_pause = std::max(sizes.longest_pause, pass - sizes.last_pass);
    sizes.last_pass = pass;
    sizes.largest_bytes = std::max(sizes.largest_bytes, batch.size_bytes[i]);
    if (sizes.by_size.size() < StackSizes::kMostSizes ||
        sizes.by_size.contains(batch.size_bytes[i]))
      ++sizes.by_size[batch.size_bytes[i]];
    blocks_[key] = {batch.size_bytes[i], evidence.backward_passes, batch.stack[i]};
  }

  void free(uint64_t key, uint32_t thread) {
    const auto found = blocks_.find(key);
    if (found == blocks_.end()) return;
    const uint32_t slot = slot_of(thread);
    end(found->second, slot < phases_.size() && phases_[slot] == WorkPhase::kBackward);
    blocks_.erase(found);
  }

  void end(const SavedBlock& block, bool in_backward) {
    if (!block.is_saved || block.is_told) return;
    GraphLives& lives = evidence.by_stack[block.stack];
    lives.largest_bytes = std::max(lives.largest_bytes, block.size_bytes);
    if (in_backward) {
      ++lives.in_backward;
    } else if (block.backward_passes != evidence.backward_passes) {
      ++lives.after_backward;
      lives.after_bytes += block.size_bytes;
    } else {
      ++lives.without_backward;
      lives.without_bytes += block.size_bytes;
    }
  }

  void take_mark(const Mark& mark) {
    if (mark.kind == MarkKind::kStep) {
      // Its thread has left the backward pass, also where nothing is allocated after it.
      for (uint32_t slot = 0; slot < phases_.size(); ++slot) enter(slot, WorkPhase::kNone);
      return;
    }
    if (mark.kind != MarkKind::kSaved && mark.kind != MarkKind::kRole) return;
    if (mark.kind == MarkKind::kRole && mark.thread < tables_.threads.size() &&
        mark.value == static_cast<uint64_t>(StorageRole::kOptimizerState))
      evidence.optimizer_states.insert({tables_.threads[mark.thread].process, mark.text});
    for (uint16_t device = 0; device < tables_.devices.size(); ++device) {
      const auto found = blocks_.find(key_of(device, mark.address));
      if (found == blocks_.end()) continue;
      SavedBlock& block = found->second;
      if (mark.kind == MarkKind::kRole) {
        block.is_told = true;
        continue;
      }
      const WorkPhase phase = attributions_.of(block.stack).phase;
      const bool is_result = phase == WorkPhase::kForward || (mark.value & kSavedIsOutput);
      const bool is_first = !block.is_seen && block.backward_passes != evidence.backward_passes;
      block.is_seen = true;
      if (is_first) ++evidence.by_stack[block.stack].saved_later;
      block.is_saved |= is_result || (mark.value & kSavedHasHistory);
    }
  }

  const Tables& tables_;
  Attributions attributions_;
  absl::flat_hash_map<uint64_t, SavedBlock> blocks_;
  std::vector<WorkPhase> phases_;  // by slot_of() a thread
};

}  // namespace

Result<GraphEvidence> gather_graph_lives(EventSource& source) {
  GraphLivesGatherer gatherer(source.tables());
  EventBatch batch;
  for (;;) {
    const Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    gatherer.take(batch);
  }
  return std::move(gatherer.evidence);
}

}  // namespace gpumemprof
