#include "analysis/leaks.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/leak_passes.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

/// Of one process, by stack: the blocks that were made after the warm-up and are live; `old_count`
/// of them before the last steps.
struct Survivors {
  uint64_t count = 0, largest_bytes = 0, bytes = 0, old_count = 0;
};
using SurvivorsByStack = absl::flat_hash_map<uint64_t, Survivors>;

uint64_t key_of(uint16_t device, uint32_t stack) { return uint64_t{device} << 32 | stack; }

/// When the first `steps` steps had ended.
uint64_t time_after(uint64_t steps, const ProcessHistory& history, const Period& period) {
  for (uint32_t window = 0; window < period.done.size(); ++window) {
    if (period.done[window] >= steps) return history.end_ns[window];
  }
  return 0;
}

/// What is as young as one step in so many is replaced in every step, not kept.
constexpr uint64_t kLastSteps = 8;

SurvivorsByStack survivors_since(uint64_t warm_up_steps, const ProcessHistory& history,
                                 const Period& period) {
  const uint64_t time_ns = time_after(warm_up_steps, history, period);
  const uint64_t last_steps = std::max<uint64_t>(2, period.steps() / kLastSteps);
  const uint64_t last_ns =
      time_after(period.steps() - std::min(last_steps, period.steps()), history, period);
  SurvivorsByStack out;
  for (const KeptBlock& block : history.kept) {
    if (block.time_ns == LiveBlock::kUnknownTime || block.time_ns < time_ns) continue;
    Survivors& of_stack = out[key_of(block.device, block.stack)];
    ++of_stack.count;
    of_stack.bytes += block.size_bytes;
    of_stack.old_count += block.time_ns < last_ns;
    of_stack.largest_bytes = std::max(of_stack.largest_bytes, block.size_bytes);
  }
  return out;
}

double seconds_a_step(const ProcessHistory& history, const Period& period) {
  const uint64_t first = history.end_ns[period.first_window];
  const uint64_t last = history.end_ns[period.last_window];
  const uint64_t steps = period.done[period.last_window] - period.done[period.first_window];
  return steps == 0 || last <= first
             ? 0
             : static_cast<double>(last - first) * 1e-9 / static_cast<double>(steps);
}

void add(const SiteHistory& site, const LeakGrowth& growth, const SurvivorsByStack& survivors,
         Leak* leak) {
  LeakStack stack{.stack = site.stack,
                  .growth = growth,
                  .live_bytes = site.live_bytes,
                  .alloc_count = site.alloc_count};
  const auto known = survivors.find(key_of(site.device, site.stack));
  if (known != survivors.end()) {
    stack.survivors = known->second.count;
    stack.largest_bytes = known->second.largest_bytes;
    stack.survivor_bytes = known->second.bytes;
    stack.old_survivors = known->second.old_count;
  }
  leak->bytes_a_step += growth.bytes_a_step;
  leak->live_bytes += site.live_bytes, leak->grown_bytes += growth.grown_bytes;
  if (growth.steps_after_warm_up != 0) {
    leak->survivors_a_step +=
        static_cast<double>(stack.survivors) / static_cast<double>(growth.steps_after_warm_up);
  }
  leak->steps = std::max(leak->steps, growth.steps);
  leak->warm_up_steps = growth.warm_up_steps;
  leak->stacks.push_back(stack);
}

void finish(Leak* leak) {
  std::ranges::stable_sort(leak->stacks, std::greater<>(),
                           [](const LeakStack& s) { return s.growth.bytes_a_step; });
  leak->z = leak->stacks.front().growth.z;
}

}  // namespace

uint32_t leak_line(const Tables& tables, uint32_t stack) {
  if (const uint32_t own = own_node(tables, stack); own != 0) return own;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
    if (frame.line != 0 && !is_native_source(tables.strings.get(frame.file))) return node;
  }
  return stack;
}

std::vector<Leak> find_leaks(const std::vector<ProcessHistory>& histories, const Tables& tables) {
  std::vector<Leak> out;
  for (const ProcessHistory& history : histories) {
    const Period period = find_period(history);
    if (period.from == Period::From::kNothing) continue;
    SurvivorsByStack survivors;
    std::map<std::tuple<uint16_t, uint32_t>, Leak> by_line;  // device, frame of the line
    for (const SiteHistory& site : history.sites) {
      const auto growth = growth_of(site, period);
      if (!growth) continue;
      if (survivors.empty()) {
        survivors = survivors_since(growth->warm_up_steps, history, period);
      }
      const uint32_t node = leak_line(tables, site.stack);
      Leak& leak = by_line[{site.device, tables.stacks.node(node).frame}];
      leak.process = history.process, leak.device = site.device;
      if (leak.node == 0) leak.node = node;
      leak.period_from = period.from;
      leak.seconds_a_step = seconds_a_step(history, period);
      add(site, *growth, survivors, &leak);
    }
    if (by_line.empty()) continue;
    const Passes passes = passes_of(history, period, tables);
    for (const SiteHistory& site : history.sites) {
      const uint32_t node = leak_line(tables, site.stack);
      const auto leak = by_line.find({site.device, tables.stacks.node(node).frame});
      if (leak == by_line.end()) continue;
      const bool grows = std::ranges::find(leak->second.stacks, site.stack, &LeakStack::stack) !=
                         leak->second.stacks.end();
      if (!grows) leak->second.others.push_back(site.stack);
    }
    for (auto& [line, leak] : by_line) {
      finish(&leak);
      leak.is_training = passes.have_backward, leak.sizes_rise = passes.sizes_rise;
      out.push_back(std::move(leak));
    }
  }
  std::ranges::stable_sort(out, std::greater<>(), &Leak::grown_bytes);
  return out;
}

}  // namespace gpumemprof
