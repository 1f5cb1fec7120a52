#include "analysis/leaks/graph_lives.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/categories/attribution.h"
#include "analysis/categories/loader_tasks.h"
#include "base/path_parts.h"
#include "trace/module_path.h"

namespace gpumemprof {
namespace {

struct SavedBlock {
  uint64_t size_bytes = 0, backward_passes = 0, event = 0;
  uint32_t stack = 0;
  uint16_t device = 0;
  // Seen: autograd saved it; told: a parameter or the like.
  bool is_saved = false, is_seen = false, is_told = false;
  bool is_read = false;      // another operation than its own saved it
  bool has_history = false;  // its own operation is in the graph, where nothing came before
  bool is_of_graph = false;  // not only a view that requires no gradient
  bool is_data = false;      // saved, or saved again, when a backward pass had ended in its life
  uint64_t saved_at = 0;     // backward passes by then, the last time
  uint64_t refusals = 0;     // of its process, by then
  uint64_t steps = 0;        // likewise, that had ended
};

/// Numbers of backward passes through a module, from 1; 0: none.
struct ModulePasses {
  uint64_t last = 0, last_freeing = 0;  // that freed what was saved there
  uint64_t retaining = 0;               // that freed nothing, of those before the last
  uint64_t last_retaining() const { return last > last_freeing ? last : retaining; }
};

class GraphLivesGatherer {
 public:
  explicit GraphLivesGatherer(const Tables& tables) : tables_(tables), attributions_(tables) {}

  void take(const EventBatch& batch) {
    size_t mark = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      for (; mark < batch.marks.size() && batch.marks[mark].before_event <= i; ++mark)
        take_mark(batch.marks[mark]);
      const uint64_t key = key_of(batch.device[i], batch.address[i]);
      if (batch.device[i] >= events_of_.size()) events_of_.resize(size_t{batch.device[i]} + 1);
      const uint64_t event = events_of_[batch.device[i]]++;
      if (batch.action[i] == Action::kAlloc)
        allocate(batch, i, key, event);
      else if (is_free(batch.action[i]))
        free(key, batch.thread[i]);
      else if (batch.action[i] == Action::kOom)
        ++refusals_[process_of(batch.device[i])];
    }
    for (; mark < batch.marks.size(); ++mark) take_mark(batch.marks[mark]);
  }

  /// After the last event. What a later backward pass left is a result as often as a graph.
  void finish() {
    leave_passes();
    for (const auto& [key, block] : blocks_) {
      if (!is_passed(block) && has_exited(block.device))
        end(block, false);
      else if (block.is_saved && !block.is_told)
        add_idle(block, UINT64_MAX);
    }
  }

  GraphEvidence evidence;

 private:
  bool has_exited(uint16_t device) const {
    const uint32_t process = process_of(device);
    return process < tables_.processes.size() && tables_.processes[process].exited_cleanly;
  }

  void leave_passes() {
    for (uint32_t slot = 0; slot < phases_.size(); ++slot) enter(slot, WorkPhase::kNone);
  }

  /// Addresses of different devices may be equal; user space has 47 bits of them.
  static uint64_t key_of(uint16_t device, uint64_t address) {
    return address ^ (uint64_t{device} << 48);
  }

  /// A snapshot's events name no thread (UINT32_MAX): theirs is the first.
  static uint32_t slot_of(uint32_t thread) { return thread + 1; }

  void enter(uint32_t slot, WorkPhase phase) {
    if (slot >= phases_.size()) phases_.resize(size_t{slot} + 1);
    if (phases_[slot] == WorkPhase::kBackward && phase != WorkPhase::kBackward)
      ++evidence.backward_passes, pass_ends_.add(events_of_);
    phases_[slot] = phase;
  }

  /// How many events each device had when passes, or steps, ended, from the first on.
  struct Ends {
    std::vector<std::vector<uint64_t>> by_device;
    uint64_t count = 0;
    void add(const std::vector<uint64_t>& events) {
      by_device.resize(std::max(by_device.size(), events.size()));
      for (size_t i = 0; i < events.size(); ++i) {
        by_device[i].resize(count);  // a new device had none
        by_device[i].push_back(events[i]);
      }
      ++count;
    }
    /// Of number `number`, from 1; absent where it has not ended.
    std::optional<uint64_t> of(uint16_t device, uint64_t number) const {
      if (device >= by_device.size() || number == 0 || number > by_device[device].size())
        return std::nullopt;
      return by_device[device][number - 1];
    }
  };

  /// The last pass through its module that freed nothing: one that frees does not run through what
  /// it leaves. 0: there was none in its life.
  uint64_t last_use(const SavedBlock& block) {
    const uint64_t pass = passes_near(block).last_retaining();
    return pass > block.backward_passes ? pass : 0;
  }

  void add_idle(const SavedBlock& block, uint64_t end_event) {
    const uint64_t pass = last_use(block);
    const auto begin = pass != 0 ? pass_ends_.of(block.device, pass)
                                 : step_ends_[process_of(block.device)].of(block.device, block.steps + 1);
    if (!begin || *begin >= end_event) return;
    if (idle_count_++ >= GraphEvidence::kMostIdle) {
      evidence.has_all_idle = false;
      return evidence.idle.clear();
    }
    evidence.idle[block.device].push_back({*begin, end_event, block.size_bytes, block.stack});
  }

  /// Through the block's module, or through one beside it, as not every node allocates.
  ModulePasses passes_near(const SavedBlock& block) {
    const std::string_view module = attributions_.of(block.stack).module;
    const std::string_view above = module_above(module);
    const auto passes = passes_.find(above.empty() ? module : above);
    return passes == passes_.end() ? ModulePasses{} : passes->second;
  }

  /// A backward pass has ended in the block's life. Where the block's own operation is in the graph:
  /// one that ran through its module.
  bool is_passed(const SavedBlock& block) {
    if (block.backward_passes == evidence.backward_passes) return false;
    // Not every release of PyTorch names modules in backward.
    if (!block.has_history || passes_.empty() || attributions_.of(block.stack).module.empty())
      return true;
    return passes_near(block).last > block.backward_passes;
  }

  /// A node of the module runs; or it frees what was saved there.
  void pass_through(std::string_view module, uint64_t ModulePasses::* which) {
    const uint64_t now = evidence.backward_passes + 1;
    for (; !module.empty(); module = module_above(module)) {
      ModulePasses& passes = passes_[module];
      if (passes.*which == now) return;
      if (passes.last < now) passes.retaining = passes.last_retaining();
      passes.*which = now;
    }
  }

  void allocate(const EventBatch& batch, size_t i, uint64_t key, uint64_t event) {
    const Attribution& work = attributions_.of(batch.stack[i]);
    enter(slot_of(batch.thread[i]), work.phase);
    if (work.phase == WorkPhase::kBackward) pass_through(work.module, &ModulePasses::last);
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
    if (batch.device[i] < tables_.devices.size())
      take_task(tables_.devices[batch.device[i]].process, batch.stack[i], batch.size_bytes[i]);
    blocks_[key] = {batch.size_bytes[i], evidence.backward_passes, event, batch.stack[i],
                    batch.device[i]};
    blocks_[key].steps = step_ends_[process_of(batch.device[i])].count;
    if (!refusals_.empty()) blocks_[key].refusals = refusals_[process_of(batch.device[i])];
  }

  void take_task(uint32_t process, uint32_t stack, uint64_t size_bytes) {
    const auto [known, is_new] = task_frames_.try_emplace(stack);
    if (is_new) known->second = task_frame(tables_, stack);
    const uint32_t frame = known->second;
    if (frame == 0) return;
    const uint64_t turn = turns_[process].of_line(frame);
    LoaderBatches& batches = evidence.loader_batches[{process, stack}];
    if (batches.turn != turn) batches.turn = turn, batches.turn_bytes = 0, ++batches.tasks;
    batches.turn_bytes += size_bytes;
    batches.largest_bytes = std::max(batches.largest_bytes, batches.turn_bytes);
  }

  void free(uint64_t key, uint32_t thread) {
    const auto found = blocks_.find(key);
    if (found == blocks_.end()) return;
    const uint32_t slot = slot_of(thread);
    end(found->second, slot < phases_.size() && phases_[slot] == WorkPhase::kBackward);
    blocks_.erase(found);
  }

  /// A request was refused in its life, for want of which its backward pass may never have come.
  bool is_cut_off(const SavedBlock& block) const {
    if (refusals_.empty()) return false;
    const auto so_far = refusals_.find(process_of(block.device));
    return so_far != refusals_.end() && so_far->second != block.refusals;
  }

  uint32_t process_of(uint16_t device) const {
    return device < tables_.devices.size() ? tables_.devices[device].process : UINT32_MAX;
  }

  void end(const SavedBlock& block, bool in_backward) {
    if (!block.is_saved || block.is_told) return;
    GraphLives& lives = evidence.by_stack[block.stack];
    lives.largest_bytes = std::max(lives.largest_bytes, block.size_bytes);
    lives.read_by_others += !in_backward && block.is_read;
    lives.data += block.is_data || !block.is_of_graph;
    if (in_backward) {
      ++lives.in_backward;
      pass_through(attributions_.of(block.stack).module, &ModulePasses::last_freeing);
    } else if (is_cut_off(block)) {
      return;
    } else if (is_passed(block)) {
      const ModulePasses passes = passes_near(block);
      lives.passed_by += block.is_of_graph && passes.last > block.backward_passes &&
                         passes.last_retaining() <= block.backward_passes;
      ++lives.after_backward;
      lives.after_bytes += block.size_bytes;
      if (last_use(block) != 0) lives.retained_bytes += block.size_bytes;
      add_idle(block, events_of_[block.device]);
    } else {
      ++lives.without_backward;
      lives.without_bytes += block.size_bytes;
    }
  }

  void take_mark(const Mark& mark) {
    if (mark.kind == MarkKind::kStep) {
      // Its thread has left the backward pass, also where nothing is allocated after it.
      leave_passes();
      if (mark.thread < tables_.threads.size())
        step_ends_[tables_.threads[mark.thread].process].add(events_of_);
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
        if (mark.value != kNoRole && is_loaded(tables_, block.stack))
          evidence.loaded_and_used[device].insert(block.event);
        continue;
      }
      const WorkPhase phase = attributions_.of(block.stack).phase;
      const bool is_result = phase == WorkPhase::kForward || (mark.value & kSavedIsOutput);
      const bool is_later = block.backward_passes != evidence.backward_passes;
      const uint64_t known_at = block.is_seen ? block.saved_at : block.backward_passes;
      block.is_data |= known_at != evidence.backward_passes;
      block.is_seen = true, block.saved_at = evidence.backward_passes;
      block.is_read |= !(mark.value & kSavedIsOutput);
      block.is_saved |= is_result || (mark.value & kSavedHasHistory);
      const bool is_derived =
          (mark.value & kSavedHasHistory) && !(mark.value & kSavedIsConstant);
      block.is_of_graph |= is_result || is_derived;
      block.has_history |= !is_later && (is_derived || (mark.value & kSavedIsOutput));
    }
  }

  const Tables& tables_;
  Attributions attributions_;
  absl::flat_hash_map<uint64_t, SavedBlock> blocks_;
  std::vector<WorkPhase> phases_;    // by slot_of() a thread
  absl::flat_hash_map<uint32_t, uint64_t> refusals_;  // by process
  absl::flat_hash_map<std::string_view, ModulePasses> passes_;  // by module, and by what it is in
  std::vector<uint64_t> events_of_;  // by device, so far
  Ends pass_ends_;
  absl::flat_hash_map<uint32_t, Ends> step_ends_;  // by process
  size_t idle_count_ = 0;
  absl::flat_hash_map<uint32_t, uint32_t> task_frames_;  // by stack
  absl::flat_hash_map<uint32_t, LoaderTurns> turns_;  // by process
};

}  // namespace

bool is_loaded(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return path_ends_with(tables.strings.get(frame.file), "/torch/serialization.py");
  }) != 0;
}

Result<GraphEvidence> gather_graph_lives(EventSource& source, const ProgramEnds& ends) {
  GraphLivesGatherer gatherer(source.tables());
  EventBatch batch;
  for (;;) {
    const Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    gatherer.take(batch);
  }
  if (ends.failure.empty() && ends.refused.empty() && ends.uncaught.empty()) gatherer.finish();
  return std::move(gatherer.evidence);
}

}  // namespace gpumemprof
