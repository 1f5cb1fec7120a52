#include "report/json/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/size.h"
#include "report/describe/describe.h"
#include "report/describe/sections.h"
#include "report/render/text.h"

namespace gpumemprof {
namespace {

using testing::ElementsAre;

std::vector<std::string> identity_lines(const DriverMoment& moment) {
  Section section;
  section.add(identity_table(moment, identity_of(moment)));
  return text_lines(section, {});
}

DriverMoment moment_with(uint64_t context_bytes) {
  DriverMoment moment;
  moment.live_bytes[static_cast<size_t>(DriverUse::kHandles)] = 30 * kMiB;
  moment.live_bytes[static_cast<size_t>(DriverUse::kContexts)] = context_bytes;
  moment.libraries = {{"libc10_cuda.so", 20 * kMiB, true}, {"libnccl.so.2\x1b", 10 * kMiB, false}};
  moment.framework_allocated_bytes = 12 * kMiB;
  moment.framework_reserved_bytes = 18 * kMiB;
  return moment;
}

TEST(DriverReport, WritesTheSumWithEachTermOnALine) {
  const DeviceTruth truth = {.device_used_bytes = 900 * kMiB,
                             .process_used_bytes = 520 * kMiB,
                             .others_used_bytes = 300 * kMiB,
                             .reserved_bytes = 80 * kMiB};
  DriverMoment moment = moment_with(500 * kMiB);
  moment.truth = truth;
  EXPECT_THAT(identity_lines(moment),
              ElementsAre("  device used                                  900 MiB",
                          "    driver's own                              80.0 MiB",
                          "    other processes                            300 MiB",
                          "    this process                               520 MiB",
                          "      contexts                                 500 MiB  an estimate",
                          "      modules                                      0 B  an estimate",
                          "      libnccl.so.2\uFFFD                           10.0 MiB",
                          "      rounding to pages of 2 MiB                   0 B",
                          "      framework                               20.0 MiB",
                          "        allocated                             12.0 MiB",
                          "        cached                                6.00 MiB",
                          "        outside its allocator                +2.00 MiB",
                          "      unexplained                            -10.0 MiB"));
}

TEST(DriverReport, SaysWhyATermIsUnknown) {
  DriverMoment moment = moment_with(0);
  moment.unmeasured_contexts = 1;
  const std::vector<std::string> lines = identity_lines(moment);
  EXPECT_EQ(lines[0],
            "  device used                                  unknown  because the device was not "
            "sampled between this moment and the next change");
  EXPECT_THAT(lines,
              testing::Contains("      contexts                                 unknown  because "
                                "the device could not be sampled before a context was created"));
  EXPECT_THAT(lines.back(), testing::EndsWith("because this process's use is unknown"));
}

TEST(DriverReport, WithoutTheDriverThereIsNothingToSay) {
  EXPECT_TRUE(driver_json({}, {}).is_null());
  const Analysis analysis;
  const Tables tables;
  const DescribeOptions options;
  EXPECT_TRUE(driver_sections({analysis, tables, options}).empty());
}

}  // namespace
}  // namespace gpumemprof
