#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "report/describe/facts.h"
#include "report/export/pprof_writer.h"
#include "report/export/stack_exports.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// In the order of the values of every sample: peak, whole run, end.
const PprofTypes kTypes = {{"inuse_objects", "count"}, {"inuse_space", "bytes"},
                           {"alloc_objects", "count"}, {"alloc_space", "bytes"},
                           {"end_objects", "count"},   {"end_space", "bytes"}};

void write_samples(const DeviceAnalysis& device, PprofWriter* writer) {
  std::vector<std::pair<uint32_t, std::vector<uint64_t>>> rows;
  absl::flat_hash_map<uint32_t, size_t> index;
  const auto take = [&](const std::vector<Holder>& holders, size_t first) {
    for (const Holder& holder : holders) {
      auto [at, added] = index.try_emplace(holder.stack, rows.size());
      if (added) rows.push_back({holder.stack, std::vector<uint64_t>(kTypes.size())});
      std::vector<uint64_t>& values = rows[at->second].second;
      values[first] = holder.count, values[first + 1] = holder.bytes;
    }
  };
  take(device.holders_at_peak, 0);
  take(device.totals, 2);
  take(device.holders_at_end, 4);
  for (const auto& [stack, values] : rows) writer->sample(stack, values);
}

}  // namespace

Status export_pprof(const Analysis& analysis, const DeviceAnalysis& device, const Tables& tables,
                    std::string_view version, const TextSink& sink) {
  PprofWriter writer(kTypes, "inuse_space");
  writer.set_tables(tables);
  write_samples(device, &writer);
  const WallTime start = wall_time(process_at(tables, device_at(tables, device.device).process),
                                   analysis.start_time_ns);
  if (start.known) writer.set_time(start.time_us * 1000);
  writer.set_duration(analysis.last_time_ns -
                      std::min(analysis.start_time_ns, analysis.last_time_ns));
  writer.comment("gpumemprof " + std::string(version));
  writer.comment(peak_sentence(analysis, tables, device));
  writer.comment("inuse: live at the peak; alloc: over the whole run; end: live at the end");
  if (!is_complete(analysis.loss)) writer.comment(loss_sentence(analysis.loss));
  return writer.finish(sink);
}

}  // namespace gpumemprof
