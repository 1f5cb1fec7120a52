#include "analysis/host/host_findings.h"

#include <algorithm>
#include <optional>

#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

/// One series of the machine, or of a process.
struct OfHost {
  const RecordedSamples& samples;
  size_t series;
  OfHost(const RecordedSamples& samples, const char* field, int64_t pid = 0)
      : samples(samples), series(samples.find({"/proc", "host", field, pid})) {}

  std::optional<uint64_t> at(size_t look) const {
    const auto* point = series == SIZE_MAX ? nullptr : samples.at(series, look);
    if (!point || point->kind != SampledKind::kNumber) return std::nullopt;
    return point->number;
  }
};

}  // namespace

std::vector<HostRoom> host_rooms(const std::vector<RecordedSamples>& all) {
  std::vector<HostRoom> out;
  for (const RecordedSamples& samples : all) {
    const OfHost totals(samples, "total_bytes"), availables(samples, "available_bytes"),
        limits(samples, "limit_bytes"), uses(samples, "limit_used_bytes");
    for (size_t i = 0; i < samples.series.size(); ++i) {
      const SampleKey& key = samples.series[i];
      if (key.pid <= 0 || key.field != "resident_bytes" || samples.points[i].empty()) continue;
      // Gone is what it is from its last point on; else it was there at the last look.
      const RecordedSamples::Point& last = samples.points[i].back();
      const size_t after = last.kind == SampledKind::kGone ? last.look : samples.looks.size();
      if (after == 0) continue;
      const auto total = totals.at(after - 1), available = availables.at(after - 1);
      const auto limit = limits.at(after - 1), used = uses.at(after - 1);
      const auto may_map = OfHost(samples, "mapped_limit_bytes", key.pid).at(after - 1);
      const auto mapped = OfHost(samples, "mapped_bytes", key.pid).at(after - 1);
      std::optional<HostRoom> room;
      const auto take = [&](uint64_t limit_bytes, uint64_t free_bytes, bool is_of_process) {
        if (room && room->free_bytes <= free_bytes) return;
        room = {static_cast<uint32_t>(key.pid), samples.host, limit_bytes, free_bytes,
                is_of_process};
      };
      if (total && available) take(*total, std::min(*total, *available), false);
      if (limit && used) take(*limit, *limit - std::min(*limit, *used), false);
      if (may_map && mapped) take(*may_map, *may_map - std::min(*may_map, *mapped), true);
      if (room) out.push_back(*std::move(room));
    }
  }
  return out;
}

}  // namespace gpumemprof
