#include "analysis/replay/study_request.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

std::string refusal(const StudyRequest& request) {
  const Result<StudyOptions> options = study_options(request);
  return options ? "" : options.error().message;
}

TEST(StudyRequest, ReadsASizeAndARelease) {
  const Result<StudyOptions> options = study_options({.settings = {"expandable_segments:True"},
                                                      .capacity = "1.5GiB",
                                                      .torch = "2.13.1",
                                                      .sweep = true,
                                                      .threads = 3});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->settings, std::vector<std::string>{"expandable_segments:True"});
  EXPECT_EQ(options->capacity_bytes, 1536ull << 20);
  EXPECT_EQ(options->release, *find_release("2.13"));
  EXPECT_TRUE(options->sweep);
  EXPECT_FALSE(options->force);
  EXPECT_EQ(options->threads, 3u);
  EXPECT_FALSE(study_options({})->capacity_bytes);
  EXPECT_FALSE(study_options({})->release);
}

TEST(StudyRequest, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({.capacity = "0"}), "capacity 0: the capacity must be above 0");
  EXPECT_EQ(refusal({.capacity = "many"}).find("capacity many: "), 0u);
  EXPECT_EQ(refusal({.torch = "3.0"}).find("no rules for PyTorch 3.0: known are 2.1 to "), 0u);
}

TEST(StudyRequest, ADeviceIsNamedOrNumbered) {
  AllocatorSnapshot snapshot;
  EXPECT_EQ(study_trace(snapshot, "").error().message,
            "the snapshot is empty: no segment and no event");
  EXPECT_EQ(study_trace(snapshot, "0").error().message, "no device 0: the snapshot has none");
  for (int8_t index : {0, 3}) {
    Device device;
    device.type = 1;
    device.index = index;
    snapshot.tables.devices.push_back(device);
    snapshot.traces.emplace_back().device = index;
  }
  EXPECT_EQ(*study_trace(snapshot, "3"), 1u);
  EXPECT_EQ(*study_trace(snapshot, "cuda:3"), 1u);
  EXPECT_EQ(*study_trace(snapshot, ""), 0u);
  EXPECT_EQ(study_trace(snapshot, "1").error().message,
            "no device 1: the snapshot has device 0 (cuda:0), 3 (cuda:3)");
}

}  // namespace
}  // namespace gpumemprof
