#include "analysis/replay/study_request.h"

#include "analysis/replay/snapshot_analysis.h"
#include "base/size.h"

namespace gpumemprof {

Result<StudyOptions> study_options(const StudyRequest& request) {
  StudyOptions options{.settings = request.settings,
                       .sweep = request.sweep,
                       .force = request.force,
                       .threads = request.threads};
  options.never_runs_out = request.capacity == "none";
  if (!request.capacity.empty() && !options.never_runs_out) {
    Result<uint64_t> bytes = parse_capacity(request.capacity);
    if (!bytes)
      return fail(ErrorCode::kUsage, "capacity " + request.capacity + ": " + bytes.error().message);
    options.capacity_bytes = *bytes;
  }
  if (!request.torch.empty()) {
    Result<Release> release = find_release(request.torch);
    if (!release) return std::unexpected(release.error());
    options.release = *release;
  }
  return options;
}

Result<size_t> study_trace(const AllocatorSnapshot& snapshot, std::string_view device) {
  if (device.empty()) {
    if (const std::optional<size_t> main = main_trace(snapshot)) return *main;
    return fail(ErrorCode::kUnsupported, "the snapshot is empty: no segment and no event");
  }
  std::string known;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    const std::string name = device_name(snapshot.tables.devices[i]);
    const std::string number = std::to_string(snapshot.traces[i].device);
    if (device == name || device == number) return i;
    known += (known.empty() ? "device " : ", ") + number + " (" + name + ')';
  }
  return fail(ErrorCode::kUsage, "no device " + std::string(device) + ": the snapshot has " +
                                     (known.empty() ? "none" : known));
}

}  // namespace gpumemprof
