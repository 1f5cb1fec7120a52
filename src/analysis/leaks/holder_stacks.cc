#include "analysis/leaks/holder_stacks.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/leaks/leak_period.h"

namespace gpumemprof {
namespace {

/// A block that somebody holds counts more than any number that nobody does.
constexpr uint64_t kNamed = uint64_t{1} << 32;
/// Where one holder has so many times the blocks of another, the other's are of the moment.
constexpr uint64_t kInFlight = 8;
/// A holder of less than this part of what is live, in blocks and in bytes, has not what grows.
constexpr uint64_t kSmallPart = 4;

/// Below this a block may be larger than its one tensor by an allocator's rounding alone.
constexpr uint64_t kLeastViewedBytes = 1024;

ViewedBlocks viewed_of(const HoldersLook& look, uint64_t address, uint64_t size_bytes) {
  const auto shown = look.shown_bytes.find(address);
  const bool is_viewed = shown != look.shown_bytes.end() && size_bytes >= kLeastViewedBytes &&
                         shown->second <= size_bytes / 2;
  return is_viewed ? ViewedBlocks{1, size_bytes, shown->second} : ViewedBlocks{};
}

/// Stacks this deep may have been cut.
constexpr uint32_t kCutDepth = 120;

bool is_of(const Frame& frame, const RunningFunction& function, const Tables& tables) {
  const std::string_view name = tables.strings.get(frame.function);  // with its class, most often
  return tables.strings.get(frame.file) == function.file && name.ends_with(function.name);
}

/// Whether all Python functions that ran are in the stack, on the main thread.
bool has_all_functions(const Tables& tables, uint32_t thread, uint32_t stack) {
  if (thread >= tables.threads.size()) return false;
  const Thread& of = tables.threads[thread];
  return of.process < tables.processes.size() && of.tid == tables.processes[of.process].pid &&
         tables.stacks.node(stack).depth < kCutDepth &&
         tables.stacks.find_node(stack, [](const Frame& frame) { return frame.line != 0; }) != 0;
}

}  // namespace

HolderStacks::HolderStacks(const std::vector<ProcessHolders>* holders) {
  if (!holders) return;
  for (const ProcessHolders& process : *holders) {
    processes_.try_emplace({process.pid, process.start_ticks}, &process);
    for (const HoldersLook& look : process.looks) looks_.push_back({&process, &look, {}, {}, {}});
  }
  std::ranges::stable_sort(looks_, {}, [](const Look& look) { return look.look->time_ns; });
  for (size_t i = 0; i < looks_.size(); ++i) looks_of_[looks_[i].process].push_back(i);
  if (!looks_.empty()) next_ns_ = looks_[0].look->time_ns;
}

void HolderStacks::take_steps(const Tables& tables, const std::vector<Mark>& marks) {
  for (const Mark& mark : marks) {
    if (looks_.empty() || mark.kind != MarkKind::kStep) continue;
    if (mark.thread >= tables.threads.size()) continue;
    const ProcessHolders* told = of_process(tables.threads[mark.thread].process, tables);
    if (told) step_ends_[told].push_back(mark.time_ns);
  }
}

bool HolderStacks::is_of_one_step(const Look& look, uint32_t holder,
                                  const HeldByStack& held) const {
  const auto ends = step_ends_.find(look.process);
  if (!is_graph_of_few(look.look->holders[holder]) || ends == step_ends_.end()) return false;
  if (ends->second.size() < kLeastSteps) return false;  // rounds are looked at instead
  const auto end = std::ranges::lower_bound(ends->second, held.first_ns);
  return end != ends->second.end() && *end >= held.last_ns;
}

void HolderStacks::take(const Tables& tables, const LiveState& state, const Ended* ended) {
  if (next_ >= looks_.size()) return;
  const std::vector<TensorHolder>& held = looks_[next_].look->holders;
  for (uint32_t i = 0; i < held.size(); ++i)
    if (!held[i].function.file.empty()) awaited_.push_back({next_, i}), followed_.clear();
  resolve(looks_[next_++], tables, state, ended);
  next_ns_ = next_ < looks_.size() ? looks_[next_].look->time_ns : UINT64_MAX;
}

void HolderStacks::follow(const Tables& tables, uint32_t thread, uint32_t stack) {
  if (!has_all_functions(tables, thread, stack)) return;
  const uint32_t process = tables.threads[thread].process;
  if (!followed_.insert(uint64_t{process} << 32 | stack).second) return;
  const ProcessHolders* told = of_process(process, tables);
  std::erase_if(awaited_, [&](const Awaited& one) {
    Look& look = looks_[one.look];
    if (look.process != told) return false;
    const RunningFunction& function = look.look->holders[one.holder].function;
    const auto is_it = [&](const Frame& frame) { return is_of(frame, function, tables); };
    const bool has_returned = tables.stacks.find_node(stack, is_it) == 0;
    if (has_returned) look.returned.insert(one.holder);
    return has_returned;
  });
}

void HolderStacks::finish(const Tables& tables, const LiveState& state) {
  while (next_ < looks_.size()) take(tables, state);
}

void HolderStacks::resolve(Look& look, const Tables& tables, const LiveState& state,
                           const Ended* ended) const {
  for (size_t device = 0; device < state.devices().size(); ++device) {
    if (device >= tables.devices.size()) break;
    const uint32_t process = tables.devices[device].process;
    if (process >= tables.processes.size()) continue;
    if (of_process(process, tables) != look.process) continue;
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> places;  // of a stack and a holder
    const auto add = [&](uint64_t address, const LiveBlock& block) {
      const auto known = look.look->by_address.find(address);
      if (known == look.look->by_address.end()) return;
      std::vector<HeldByStack>& held = look.by_stack[uint64_t{device} << 32 | block.stack];
      const auto [place, is_new] = places.try_emplace({block.stack, known->second}, held.size());
      if (is_new) held.push_back({known->second});
      held[place->second].add({.blocks = 1,
                               .bytes = block.size_bytes,
                               .viewed = viewed_of(*look.look, address, block.size_bytes),
                               .first_ns = block.time_ns,
                               .last_ns = block.time_ns});
    };
    for (const auto& [stack, site] : state.devices()[device].sites) {
      if (site.live_count == 0) continue;
      look.live[uint64_t{device} << 32 | stack] = {site.live_count, site.live_bytes};
    }
    const auto& blocks = state.devices()[device].blocks;
    for (const auto& [address, holder] : look.look->by_address) {
      if (const LiveBlock* block = blocks.find(address)) add(address, *block);
    }
    if (!ended || ended->device != device) continue;
    Live& live = look.live[uint64_t{device} << 32 | ended->block.stack];
    ++live.blocks, live.bytes += ended->block.size_bytes;
    add(ended->address, ended->block);
  }
}

const ProcessHolders* HolderStacks::of_process(uint32_t process, const Tables& tables) const {
  if (process >= tables.processes.size()) return nullptr;
  const Process& of = tables.processes[process];
  const auto known = processes_.find({of.pid, of.start_ticks});
  return known == processes_.end() ? nullptr : known->second;
}

namespace {

bool was_full(const ProcessHolders& told, const HoldersLook& at, const TensorHolder& holder) {
  for (const HoldersLook& look : told.looks) {
    if (look.time_ns >= at.time_ns) return false;
    for (const TensorHolder& one : look.holders) {
      if (one.path == holder.path && one.most_entries != 0 && one.entries == one.most_entries)
        return true;
    }
  }
  return false;
}

}  // namespace

uint64_t HolderStacks::bytes_of(uint32_t holder, uint16_t device, const Look& look) {
  uint64_t bytes = 0;
  for (const auto& [place, held] : look.by_stack) {
    if (place >> 32 != device) continue;
    for (const HeldByStack& one : held) bytes += one.holder == holder ? one.bytes : 0;
  }
  return bytes;
}

HolderStacks::Held HolderStacks::most_of(uint32_t process, uint16_t device,
                                         const std::vector<uint32_t>& stacks,
                                         const Tables& tables, uint64_t least_blocks) const {
  Held best;
  uint64_t most_known = 0;
  const ProcessHolders* told = of_process(process, tables);
  const auto looks = looks_of_.find(told);
  if (looks == looks_of_.end()) return best;
  for (const size_t index : looks->second) {
    const Look& look = looks_[index];
    std::map<uint32_t, HeldByStack> held_by;
    uint64_t known = 0, reached_blocks = 0, returned_blocks = 0;
    Live live;
    for (uint32_t stack : stacks) {
      if (const auto of = look.live.find(uint64_t{device} << 32 | stack); of != look.live.end())
        live.blocks += of->second.blocks, live.bytes += of->second.bytes;
      const auto held = look.by_stack.find(uint64_t{device} << 32 | stack);
      if (held == look.by_stack.end()) continue;
      for (const HeldByStack& one : held->second) {
        reached_blocks += one.blocks;
        if (look.returned.contains(one.holder)) {
          returned_blocks += one.blocks;
          continue;
        }
        held_by[one.holder].add(one);
        // A look at the end sees as garbage what somebody held until then.
        const bool is_named = look.look->holders[one.holder].owner != "nothing";
        known += is_named ? kNamed * one.blocks : one.blocks;
      }
    }
    if (!best.holder) {
      best.reached_blocks = reached_blocks, best.live_blocks = live.blocks;
      best.returned_blocks = returned_blocks;
    }
    if (known <= most_known) continue;
    uint64_t most_blocks = 0;
    for (const auto& [holder, held] : held_by) most_blocks = std::max(most_blocks, held.blocks);
    const auto most = std::ranges::max_element(held_by, {}, [&](const auto& holder_and_held) {
      const auto& [holder, held] = holder_and_held;
      // One block that nothing holds may be the one that the program was making at that moment; a
      // few large ones beside many small are what it worked on.
      const bool in_flight = (look.look->holders[holder].owner == "nothing" && held.blocks == 1) ||
                             kInFlight * held.blocks < most_blocks;
      return std::pair(!in_flight, held.bytes);
    });
    const auto& [index_of_most, held] = *most;
    const bool is_small_part =
        kSmallPart * held.blocks < live.blocks && kSmallPart * held.bytes < live.bytes;
    if (held.blocks < least_blocks || is_small_part) continue;
    if (is_of_one_step(look, index_of_most, held)) continue;
    most_known = known;
    const TensorHolder& holder = look.look->holders[index_of_most];
    best = {.holder = &holder,
            .held_blocks = held.blocks,
            .held_bytes = held.bytes,
            .bytes_in_all = bytes_of(index_of_most, device, look),
            .viewed = held.viewed,
            .is_gc_disabled = look.look->is_gc_disabled,
            .was_full = was_full(*told, *look.look, holder),
            .reached_blocks = reached_blocks,
            .live_blocks = live.blocks,
            .returned_blocks = returned_blocks};
  }
  return best;
}

}  // namespace gpumemprof
