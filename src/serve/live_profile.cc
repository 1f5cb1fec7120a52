#include "serve/live_profile.h"

#include "report/export/pprof_writer.h"
#include "serve/metric_families.h"

namespace gpumemprof {
namespace {

void add_held(const PictureRecording& recording, const Tables& tables, const FollowedState& state,
              PprofWriter* writer) {
  writer->set_tables(tables);
  for (const FollowedDevice& device : state.devices) {
    PprofLabels of_device = labels_of(recording);
    of_device.emplace_back("device", device.name);
    for (const FollowedHeld& held : device.held) {
      PprofLabels labels = of_device;
      if (held.stream) labels.emplace_back("stream", std::to_string(*held.stream));
      if (!held.category.empty()) labels.emplace_back("category", held.category);
      writer->sample(held.stack, {held.count, held.bytes}, labels);
    }
  }
}

}  // namespace

Result<std::string> live_profile(Camera& camera, std::string_view version) {
  PprofWriter writer({{"inuse_objects", "count"}, {"inuse_space", "bytes"}}, "inuse_space");
  const auto lacks = [&](const PictureRecording& recording, const std::string& what) {
    writer.comment(subject_name(recording) + " (" + program_name(recording.command) + "): " + what);
  };
  writer.comment("gpumemprof " + std::string(version));
  const Picture picture = camera.take([&](const PictureRecording& recording, const Tables& tables,
                                          const FollowedState& state) {
    if (!state.has_held)
      return lacks(recording, "not in this profile: reading takes longer than the interval");
    add_held(recording, tables, state, &writer);
    if (!recording.exact) lacks(recording, "not exact: " + recording.why_inexact);
  });
  writer.set_time(picture.time_ns);
  for (const PictureRecording& recording : picture.recordings) {
    if (!recording.problem.empty()) lacks(recording, "not in this profile: " + recording.problem);
  }
  std::string out;
  if (auto done = writer.finish([&](std::string_view piece) -> Status {
        out += piece;
        return {};
      });
      !done)
    return std::unexpected(done.error());
  return out;
}

}  // namespace gpumemprof
