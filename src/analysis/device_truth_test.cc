// What samples say of each process.
#include "analysis/device_truth.h"

#include <gtest/gtest.h>

#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

/// Samples as a file of `run` has them, told series by series.
struct Told {
  RecordedSamples samples;

  explicit Told(size_t looks) {
    for (size_t i = 0; i < looks; ++i) samples.looks.push_back({.time_ns = 10 * (i + 1)});
  }
  void number(const char* device, const char* field, int64_t pid, uint32_t look, uint64_t bytes) {
    add(device, field, pid, {look, SampledKind::kNumber, bytes});
  }
  void add(const char* device, const char* field, int64_t pid, RecordedSamples::Point point) {
    const SampleKey key{"NVML", device, field, pid};
    size_t at = samples.find(key);
    if (at == SIZE_MAX) {
      at = samples.series.size();
      samples.series.push_back(key);
      samples.points.emplace_back();
    }
    samples.points[at].push_back(point);
  }
};

TEST(DeviceTruth, EverySampleThatNamesTheProcessIsOne) {
  Told told(3);
  told.number("nvidia:0", "used_bytes", 0, 0, 1000);
  told.number("nvidia:0", "reserved_bytes", 0, 0, 100);
  told.number("nvidia:0", "used_bytes", 7, 1, 300);
  told.number("nvidia:0", "used_bytes", 8, 1, 200);
  told.number("nvidia:0", "used_bytes_of_driver_pid", 9, 2, 50);
  const auto truths = device_truths({told.samples});
  ASSERT_EQ(truths.size(), 4u);
  const DeviceTruth& last = truths[2].truth;
  EXPECT_EQ(truths[2].pid, 7u);
  EXPECT_EQ(last.time_ns, 30u);
  EXPECT_EQ(last.device_used_bytes, 1000u);
  EXPECT_EQ(last.reserved_bytes, 100u);
  EXPECT_EQ(last.process_used_bytes, 300u);
  EXPECT_EQ(last.others_used_bytes, 250u);
}

TEST(DeviceTruth, OneThatIsNotToldMakesTheSumOfOthersUnknown) {
  Told told(1);
  told.samples.texts = {"no permission"};
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.add("nvidia:0", "used_bytes", 8, {0, SampledKind::kAbsent, 0});
  const auto truths = device_truths({told.samples});
  ASSERT_EQ(truths.size(), 1u);
  EXPECT_FALSE(truths[0].truth.others_used_bytes.has_value());
  EXPECT_FALSE(truths[0].truth.device_used_bytes.has_value());
}

TEST(DeviceTruth, AProcessOnTwoDevicesIsLeftOutAndASliceIsNoDevice) {
  Told told(1);
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.number("nvidia:1", "used_bytes", 7, 0, 300);
  told.number("nvidia:0", "used_bytes", 8, 0, 5);
  told.number("nvidia:0 slice 1", "used_bytes", 9, 0, 5);
  const auto truths = device_truths({told.samples});
  ASSERT_EQ(truths.size(), 1u);
  EXPECT_EQ(truths[0].pid, 8u);
  EXPECT_EQ(truths[0].truth.others_used_bytes, 300u);
}

}  // namespace
}  // namespace gpumemprof
