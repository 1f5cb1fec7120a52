#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leak_names.h"
#include "analysis/leaks/leaks.h"
#include "analysis/statistics/worth.h"
#include "base/size.h"
#include "trace/process_end.h"

namespace gpumemprof {
namespace {

/// Fewer are variables of one last call.
constexpr uint64_t kLeastGraphs = 4;
constexpr double kLeastShareOfPeak = 0.25;

/// Of a device, after the end of the last step.
struct MadeAfterSteps {
  std::vector<uint32_t> stacks;
  uint64_t bytes = 0, backward_bytes = 0;
  uint32_t largest_line = 0;  ///< StackTable id
};

MadeAfterSteps made_after_steps(const ProcessHistory& history, uint16_t device, uint64_t end_ns,
                                const Tables& tables) {
  MadeAfterSteps out;
  std::map<uint32_t, uint64_t> by_line;  // frame
  uint64_t largest_bytes = 0;
  for (const Holder& holder : kept_since(history, device, end_ns)) {
    out.stacks.push_back(holder.stack);
    out.bytes += holder.bytes;
    if (is_in_backward(tables, holder.stack)) out.backward_bytes += holder.bytes;
    const uint32_t line = leak_line(tables, holder.stack);
    uint64_t& bytes = by_line[tables.stacks.node(line).frame];
    bytes += holder.bytes;
    if (bytes > largest_bytes) largest_bytes = bytes, out.largest_line = line;
  }
  return out;
}

/// Also in part of the window that the last step ended in.
bool have_backward_after(const ProcessHistory& history, uint64_t end_ns, const Tables& tables) {
  const auto is_after = [&](const HeldCell& cell) {
    return cell.allocs != 0 && history.end_ns[cell.window] > end_ns;
  };
  return std::ranges::any_of(history.sites, [&](const SiteHistory& site) {
    return std::ranges::any_of(site.cells, is_after) && is_in_backward(tables, site.stack);
  });
}

std::optional<Finding> graphs_at_end(const ProcessHistory& history, const DeviceAnalysis& device,
                                     const Tables& tables, const HolderStacks& holders) {
  const std::vector<StepLevel>& steps = device.step_levels.levels();
  if (steps.empty()) return std::nullopt;
  const uint64_t most = std::ranges::max(steps, {}, &StepLevel::most_bytes).most_bytes;
  const auto raised = static_cast<double>(less_or_none(bytes_before_exit(device), most));
  if (!is_worth_warning(raised, device.figures.peak_bytes, kLeastShareOfPeak)) return std::nullopt;
  const uint64_t end_ns = steps.back().end_ns;
  const MadeAfterSteps made = made_after_steps(history, device.device, end_ns, tables);
  LeakEvidence evidence;
  static_cast<HolderStacks::Held&>(evidence) =
      holders.most_of(history.process, device.device, made.stacks, tables, kLeastGraphs);
  if (!keeps_whole_graphs(evidence) || evidence.holder->tensors < kLeastGraphs) return std::nullopt;
  evidence.in_module = true;
  evidence.in_backward = 2 * made.backward_bytes > made.bytes;
  evidence.trains_in_steps = have_backward_after(history, end_ns, tables);
  const LeakName& bug = name_leak(evidence);
  const uint64_t bytes = std::min(made.bytes, evidence.held_bytes);
  const std::string& name = evidence.holder->name;
  Finding finding{.kind = FindingKind::kLeak,
                  .severity = Severity::kWarning,
                  .name = bug.name,
                  .title = format_bytes(bytes) + " made after the last step are kept to the end" +
                           (name.empty() ? "" : " by " + name) + ", with the graphs of " +
                           std::to_string(evidence.holder->tensors) + " tensors",
                  .bytes = bytes,
                  .evidence = {{"grown_bytes", bytes}, {"tensors", evidence.holder->tensors}},
                  .facts = {{kMade, "after the last step"}},
                  .stack = made.largest_line,
                  .stacks = made.stacks,
                  .fix = bug.fix,
                  .device = device.device};
  add_holder(evidence, {}, evidence.live_blocks, holders.of_process(history.process, tables),
             &finding);
  return finding;
}

}  // namespace

void add_graphs_at_end(const std::vector<ProcessHistory>& histories, const Tables& tables,
                       const HolderStacks& holders, Analysis* analysis) {
  for (const ProcessHistory& history : histories) {
    if (history.process >= tables.processes.size() ||
        !ended_in_order(tables, tables.processes[history.process]))
      continue;
    for (const DeviceAnalysis& device : analysis->devices) {
      if (tables.devices[device.device].process != history.process) continue;
      const bool is_told = std::ranges::any_of(analysis->findings, [&](const Finding& one) {
        return one.kind == FindingKind::kLeak && one.device == device.device &&
               one.severity != Severity::kInfo;
      });
      if (is_told) continue;
      if (auto found = graphs_at_end(history, device, tables, holders))
        analysis->findings.push_back(*std::move(found));
    }
  }
}

}  // namespace gpumemprof
