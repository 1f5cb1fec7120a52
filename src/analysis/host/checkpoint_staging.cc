#include "analysis/host/host_findings.h"

#include <algorithm>
#include <array>

#include "base/size.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastStaged = 64 * kMiB, kLeastHolder = 64 << 10;

constexpr std::array<std::string_view, 6> kSavers = {
    "/torch/distributed/checkpoint/staging.py",
    "/torch/distributed/checkpoint/_state_dict_stager.py",
    "/torch/distributed/checkpoint/state_dict_saver.py",
    "/torch/distributed/checkpoint/_async_executor.py",
    "/torch/distributed/checkpoint/_async_thread_executor.py",
    "/torch/distributed/checkpoint/_async_process_executor.py"};
constexpr std::array<std::string_view, 3> kCopiers = {"_offload_state_dict_to_cpu",
                                                      "_copy_state_dict", "_create_cpu_state_dict"};
constexpr std::array<std::string_view, 3> kSaves = {"save", "_save", "_legacy_save"};

}  // namespace

bool is_saving(std::string_view frame) {
  const size_t colon = frame.rfind(':');
  const size_t space = colon == frame.npos ? colon : frame.find(' ', colon);
  if (space == frame.npos) return false;
  const std::string_view file = frame.substr(0, colon), function = frame.substr(space + 1);
  const auto is_one_of = [&](const auto& names) {
    return std::ranges::find(names, function) != names.end();
  };
  if (file.ends_with("/torch/serialization.py")) return is_one_of(kSaves);
  if (file.ends_with("/torch/distributed/_state_dict_utils.py")) return is_one_of(kCopiers);
  return std::ranges::any_of(kSavers, [&](std::string_view one) { return file.ends_with(one); });
}

std::vector<Finding> checkpoint_staging(const Analysis& analysis, const Tables& tables) {
  std::vector<Finding> out;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!is_host_memory(tables.devices[device.device])) continue;
    const uint64_t peak = device.figures.peak_bytes;
    uint64_t bytes = 0, count = 0, most = 0;
    uint32_t stack = 0;
    for (const Holder& holder : device.holders_at_peak) {
      if (holder.bytes < kLeastHolder) break;  // the largest come first
      if (!std::ranges::any_of(stack_lines(tables, holder.stack), is_saving)) continue;
      bytes += holder.bytes, count += holder.count;
      if (holder.bytes > most) most = holder.bytes, stack = holder.stack;
    }
    if (bytes < kLeastStaged || bytes < peak / 4) continue;
    out.push_back(
        {.kind = FindingKind::kCheckpointStaging,
         .severity = Severity::kWarning,
         .title = format_bytes(bytes) + " of the peak of " + format_bytes(peak) +
                  " were copies in host memory for saving a checkpoint",
         .bytes = bytes,
         .evidence = {{"staged_bytes", bytes}, {"blocks", count}, {"peak_bytes", peak}},
         .stack = stack,
         .fix = "save in parts or one rank of a node at a time, or have an asynchronous save reuse "
                "one staging buffer",
         .device = device.device});
  }
  return out;
}

}  // namespace gpumemprof
