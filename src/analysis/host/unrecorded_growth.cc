#include "analysis/host/host_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/statistics/growth.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// So much, and such a share of what is there at the end; less where it is most of it.
constexpr uint64_t kLeastUnrecorded = 256 * kMiB, kLeastWhereMost = 64 * kMiB;
constexpr double kLeastGrownShare = 0.25, kMost = 0.5;
constexpr size_t kMostGroups = 200;   // growth_of_floor() takes their square
constexpr size_t kShareOfStart = 3;   // one sample in so many: libraries are loaded, data is read
constexpr size_t kShareOfEnd = 10;    // one in so many may see the program give memory back

/// At most in the bucket of that time.
uint64_t most_at(const DeviceAnalysis& device, uint64_t time_ns) {
  const Timeline& timeline = device.timeline;
  if (timeline.buckets().empty() || timeline.bucket_ns() == 0 || time_ns < timeline.start_ns())
    return 0;
  const size_t at = (time_ns - timeline.start_ns()) / timeline.bucket_ns();
  return timeline.buckets()[std::min(at, timeline.buckets().size() - 1)].max_bytes;
}

uint64_t recorded_at(uint64_t time_ns, const Analysis& analysis, const Tables& tables) {
  uint64_t sum = 0;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (is_host_memory(tables.devices[device.device])) sum += most_at(device, time_ns);
  }
  return sum;
}

/// Free memory that malloc kept in the processes of the run when each told it last.
uint64_t kept_by_malloc(const HostRun& run) {
  uint64_t sum = 0;
  for (const HostProcess& process : run.processes) {
    if (!process.asked.empty()) sum += process.asked.back().malloc_kept.bytes.value_or(0);
  }
  return sum;
}

/// The least of each of at most kMostGroups groups.
std::vector<double> least_of_groups(const std::vector<double>& levels) {
  const size_t groups = std::min(levels.size(), kMostGroups);
  std::vector<double> out;
  for (size_t i = 0; i < groups; ++i) {
    const size_t from = i * levels.size() / groups, to = (i + 1) * levels.size() / groups;
    out.push_back(std::ranges::min(std::span(levels).subspan(from, to - from)));
  }
  return out;
}

}  // namespace

std::optional<Finding> unrecorded_growth(const HostRun& run, const Analysis& analysis,
                                         const Tables& tables) {
  const auto tells_more = [&](const DeviceAnalysis& device) {
    return is_host_blocks(tables.devices[device.device]);
  };
  if (std::ranges::any_of(analysis.devices, tells_more)) return std::nullopt;
  std::vector<double> unrecorded;
  std::vector<uint64_t> times_ns;
  for (const HostLevel& level : run.levels) {
    if (!level.anonymous) continue;
    const uint64_t known = recorded_at(level.time_ns, analysis, tables);
    unrecorded.push_back(static_cast<double>(*level.anonymous - std::min(known, *level.anonymous)));
    times_ns.push_back(level.time_ns);
  }
  const auto start = static_cast<ptrdiff_t>(unrecorded.size() / kShareOfStart);
  unrecorded.erase(unrecorded.begin(), unrecorded.begin() + start);
  times_ns.erase(times_ns.begin(), times_ns.begin() + start);
  if (unrecorded.empty()) return std::nullopt;
  const auto tail = unrecorded.end() - static_cast<ptrdiff_t>(unrecorded.size() / kShareOfEnd + 1);
  const auto end = std::max_element(tail, unrecorded.end()) + 1;
  times_ns.resize(static_cast<size_t>(end - unrecorded.begin()));
  unrecorded.erase(end, unrecorded.end());
  const double seconds = static_cast<double>(times_ns.back() - times_ns.front()) * 1e-9;
  const auto growth = growth_of_floor(least_of_groups(unrecorded));
  if (!growth || seconds < kLeastSecondsFromOutside) return std::nullopt;
  const uint64_t least =
      growth->bytes >= kMost * unrecorded.back() ? kLeastWhereMost : kLeastUnrecorded;
  if (growth->bytes < static_cast<double>(least) ||
      growth->bytes < kLeastGrownShare * unrecorded.back())
    return std::nullopt;
  const auto bytes = static_cast<uint64_t>(growth->bytes);
  const uint64_t kept = kept_by_malloc(run);
  const bool is_kept = static_cast<double>(kept) >= kMost * growth->bytes;
  std::string title = fmt::format(
      "anonymous memory of the host grew by {} that no recorded allocator has", format_bytes(bytes));
  if (is_kept)
    title += fmt::format("; glibc's malloc kept {} of free memory when it was asked last",
                         format_bytes(kept));
  return Finding{
      .kind = FindingKind::kUnrecordedGrowth,
      .title = std::move(title),
      .bytes = bytes,
      .evidence = {{"grown_bytes", bytes},
                   {"seconds", static_cast<uint64_t>(seconds)},
                   {"at_end_bytes", static_cast<uint64_t>(unrecorded.back())},
                   {"malloc_kept_bytes", kept}},
      .confidence = 0.9,
      .fix = is_kept ? "set MALLOC_MMAP_THRESHOLD_=131072: malloc then returns a large block when it is freed"
                     : "gpumemprof run --host records malloc's blocks and names their lines",
      .device = kOfTheHost};
}

}  // namespace gpumemprof
