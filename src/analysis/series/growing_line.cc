#include <cmath>
#include <vector>

#include "analysis/replay/snapshot_device.h"
#include "analysis/series/recording_patterns.h"
#include "base/size.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

constexpr size_t kLeastToCompare = 3;  // steps: one of the middle and the last are two

}  // namespace

bool name_growing_line(const DeviceAnalysis& device, const Tables& tables, double grown_bytes,
                       Finding* finding) {
  const bool is_since = !device.kept_after_set_up.empty();
  const std::vector<HolderLine> lines =
      group_by_line(is_since ? device.kept_after_set_up : device.holders_before_exit, tables);
  if (lines.empty() || lines[0].node == 0) return false;
  const HolderLine& most = lines[0];
  if (2 * static_cast<double>(most.bytes) < grown_bytes) return false;
  finding->stack = most.node;
  if (!is_since) {
    finding->title += "; at the end " + short_line(tables, most.node) + " held most, " +
                      format_bytes(most.bytes);
    finding->evidence.emplace_back("line_at_end_bytes", most.bytes);
    return true;
  }
  double all_bytes = 0;
  for (const HolderLine& line : lines) all_bytes += static_cast<double>(line.bytes);
  const int64_t percent = std::llround(100 * static_cast<double>(most.bytes) / all_bytes);
  finding->title += "; " + short_line(tables, most.node) + " made " + std::to_string(percent) +
                    " % of what came then and stayed, " + format_bytes(most.bytes);
  finding->evidence.emplace_back("line_grown_bytes", most.bytes);
  return true;
}

std::string fix_of_growth(const DeviceAnalysis& device) {
  const std::vector<StepLevel>& steps = device.step_levels.levels();
  if (steps.size() >= kLeastToCompare) {
    return "gpumemprof diff --steps " + std::to_string(steps[steps.size() / 2].step) + " " +
           std::to_string(steps.back().step) + " on this recording names the lines that kept it";
  }
  if (device.snapshot && !device.snapshot->is_recorded)
    return "gpumemprof run records the program with its steps, and names the lines";
  return "record again with gpumemprof.step() in the loop; then gpumemprof diff --steps A B "
         "names the lines";
}

}  // namespace gpumemprof
