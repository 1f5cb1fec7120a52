#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leak_period.h"

namespace gpumemprof {
namespace {

/// Gradients are made by the first backward passes; with accumulation by the first few.
constexpr uint64_t kFirstSteps = 3;

/// How many blocks of a size are as old and no backward pass made them: parameters are among them.
using Sizes = absl::flat_hash_map<uint64_t, uint64_t>;

Sizes older_than(uint64_t time_ns, const ProcessHistory& history, uint16_t device,
                 const Tables& tables) {
  Sizes out;
  for (const KeptBlock& block : history.kept) {
    const bool is_older = block.time_ns == LiveBlock::kUnknownTime || block.time_ns < time_ns;
    if (!is_older || block.device != device) continue;
    if (!is_in_backward(tables, block.stack)) ++out[block.size_bytes];
  }
  return out;
}

/// A line on one device, by its frame.
using Line = std::tuple<uint16_t, uint32_t>;

/// Those of backward passes that still allocate in the last third of the steps.
absl::flat_hash_set<Line> lines_that_go_on(const ProcessHistory& history, const Period& period,
                                           const Tables& tables) {
  absl::flat_hash_set<Line> out;
  uint32_t from = 0;
  while (from < period.done.size() && 3 * period.done[from] < 2 * period.steps()) ++from;
  for (const SiteHistory& site : history.sites) {
    if (site.cells.empty() || site.cells.back().window < from) continue;
    if (!is_in_backward(tables, site.stack)) continue;
    out.insert({site.device, tables.stacks.node(leak_line(tables, site.stack)).frame});
  }
  return out;
}

void add_of_process(const ProcessHistory& history, const std::vector<Leak>& leaks,
                    const Tables& tables, std::vector<KeptGradients>* out) {
  const auto is_backward = [&](const SiteHistory& one) { return is_in_backward(tables, one.stack); };
  if (std::ranges::none_of(history.sites, is_backward)) return;
  const Period period = find_periods(history, tables).front();
  if (period.from == Period::From::kNothing) return;
  // The first window of the steps may hold what was made before them, too.
  const uint64_t begin_ns =
      period.first_window == 0 ? 0 : history.end_ns[period.first_window - 1] + 1;
  const uint64_t end_ns = time_after(kFirstSteps, history, period);
  absl::flat_hash_set<uint32_t> growing;  // frames
  for (const Leak& leak : leaks) {
    if (leak.process == history.process) growing.insert(tables.stacks.node(leak.node).frame);
  }
  std::map<uint16_t, Sizes> parameters;
  std::map<Line, KeptGradients> by_line;
  absl::flat_hash_set<std::tuple<Line, uint32_t>> stacks_of_lines;
  for (const KeptBlock& block : history.kept) {
    const bool is_early = block.time_ns != LiveBlock::kUnknownTime && block.time_ns >= begin_ns &&
                          block.time_ns <= end_ns;
    if (!is_early || !is_in_backward(tables, block.stack)) continue;
    const uint32_t node = leak_line(tables, block.stack);
    const uint32_t frame = tables.stacks.node(node).frame;
    if (growing.contains(frame)) continue;
    const auto [older, is_new] = parameters.try_emplace(block.device);
    if (is_new) older->second = older_than(end_ns, history, block.device, tables);
    Sizes& sizes = older->second;
    const auto of_size = sizes.find(block.size_bytes);
    if (of_size == sizes.end() || of_size->second == 0) continue;
    --of_size->second;
    KeptGradients& kept = by_line[{block.device, frame}];
    kept.process = history.process, kept.device = block.device;
    kept.node = node, kept.steps = period.steps();
    kept.bytes += block.size_bytes, ++kept.blocks;
    if (stacks_of_lines.insert({{block.device, frame}, block.stack}).second) {
      kept.stacks.push_back(block.stack);
    }
  }
  if (by_line.empty()) return;
  const absl::flat_hash_set<Line> going_on = lines_that_go_on(history, period, tables);
  for (auto& [line, kept] : by_line) {
    if (going_on.contains(line)) out->push_back(std::move(kept));
  }
}

}  // namespace

std::vector<KeptGradients> find_kept_gradients(const std::vector<ProcessHistory>& histories,
                                               const std::vector<Leak>& leaks,
                                               const Tables& tables) {
  std::vector<KeptGradients> out;
  for (const ProcessHistory& history : histories) add_of_process(history, leaks, tables, &out);
  return out;
}

}  // namespace gpumemprof
