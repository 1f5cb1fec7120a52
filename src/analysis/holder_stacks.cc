#include "analysis/holder_stacks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gpumemprof {
namespace {

/// A block that somebody holds counts more than any number that nobody does.
constexpr uint64_t kNamed = uint64_t{1} << 32;
/// Where one holder has so many times the blocks of another, the other's are of the moment.
constexpr uint64_t kInFlight = 8;

bool is_process(const ProcessHolders& told, const Process& process) {
  return told.pid == process.pid && told.start_ticks == process.start_ticks;
}

}  // namespace

HolderStacks::HolderStacks(const std::vector<ProcessHolders>* holders) : processes_(holders) {
  if (!processes_) return;
  for (const ProcessHolders& process : *processes_) {
    for (const HoldersLook& look : process.looks) looks_.push_back({&process, &look, {}});
  }
  std::ranges::stable_sort(looks_, {}, [](const Look& look) { return look.look->time_ns; });
  if (!looks_.empty()) next_ns_ = looks_[0].look->time_ns;
}

void HolderStacks::take(const Tables& tables, const LiveState& state, const Ended* ended) {
  if (next_ >= looks_.size()) return;
  resolve(looks_[next_++], tables, state, ended);
  next_ns_ = next_ < looks_.size() ? looks_[next_].look->time_ns : UINT64_MAX;
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
    if (!is_process(*look.process, tables.processes[process])) continue;
    const auto add = [&](uint64_t address, const LiveBlock& block) {
      const auto known = look.look->by_address.find(address);
      if (known == look.look->by_address.end()) return;
      std::vector<HeldByStack>& held = look.by_stack[uint64_t{device} << 32 | block.stack];
      auto of_holder = std::ranges::find(held, known->second, &HeldByStack::holder);
      if (of_holder == held.end()) of_holder = held.insert(held.end(), {known->second});
      ++of_holder->blocks;
      of_holder->bytes += block.size_bytes;
    };
    for (const auto& [address, block] : state.devices()[device].blocks) add(address, block);
    if (ended && ended->device == device) add(ended->address, ended->block);
  }
}

const ProcessHolders* HolderStacks::of_process(uint32_t process, const Tables& tables) const {
  if (!processes_ || process >= tables.processes.size()) return nullptr;
  for (const ProcessHolders& one : *processes_) {
    if (is_process(one, tables.processes[process])) return &one;
  }
  return nullptr;
}

HolderStacks::Held HolderStacks::most_of(uint32_t process, uint16_t device,
                                         const std::vector<uint32_t>& stacks,
                                         const Tables& tables) const {
  Held best;
  uint64_t most_known = 0;
  const ProcessHolders* told = of_process(process, tables);
  for (const Look& look : looks_) {
    if (look.process != told) continue;
    std::map<uint32_t, HeldByStack> held_by;
    uint64_t known = 0;
    for (uint32_t stack : stacks) {
      const auto held = look.by_stack.find(uint64_t{device} << 32 | stack);
      if (held == look.by_stack.end()) continue;
      for (const HeldByStack& one : held->second) {
        held_by[one.holder].blocks += one.blocks;
        // A look at the end sees as garbage what somebody held until then.
        const bool is_named = look.look->holders[one.holder].owner != "nothing";
        known += is_named ? kNamed * one.blocks : one.blocks;
        held_by[one.holder].bytes += one.bytes;
      }
    }
    if (known <= most_known) continue;
    most_known = known;
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
    best = {&look.look->holders[most->first], most->second.blocks};
  }
  return best;
}

}  // namespace gpumemprof
