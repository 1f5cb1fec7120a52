#include "report/json_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using nlohmann::json;

json json_of(MemorySource& source) {
  const Analysis analysis = analyze_all(source);
  return json::parse(json_report(analysis, source.tables()));
}

TEST(JsonReport, HoldsTheFiguresOfTheContract) {
  MemorySource source = sample_source();
  const json report = json_of(source);
  EXPECT_EQ(report["schema"], "gpumemprof.analysis/1");
  ASSERT_EQ(report["devices"].size(), 2u);
  const json& cpu = report["devices"][0];
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_EQ(cpu["process"], 11);
  EXPECT_EQ(cpu["events"]["alloc"], 3);
  EXPECT_EQ(cpu["events"]["free_completed"], 2);
  EXPECT_EQ(cpu["peak"]["basis"], "requested");
  EXPECT_EQ(cpu["peak"]["requested_bytes"], 1000);
  EXPECT_EQ(cpu["peak"]["allocated_bytes"], 1000) << "on the CPU nothing is rounded";
  EXPECT_EQ(cpu["peak"]["exact"], true);
  EXPECT_EQ(cpu["peak_allocated"]["allocated_bytes"], 1000);
  EXPECT_EQ(cpu["peak"]["event_index"], 2);
  EXPECT_EQ(cpu["peak"]["time_us"], 3'000'007) << "3 s on the monotonic clock, 7 us of offset";
  EXPECT_EQ(cpu["peak"]["seconds_after_start"], 2.5);
  EXPECT_EQ(cpu["end"]["requested_bytes"], 800);
  EXPECT_EQ(cpu["end"]["blocks"], 2);
  EXPECT_EQ(cpu["total"]["unmatched_frees"], 1);
  EXPECT_EQ(cpu["total"]["alloc_per_second"], 0.75) << "3 in 4 s";
  ASSERT_EQ(cpu["holders_at_peak"].size(), 3u);
  EXPECT_EQ(cpu["holders_at_peak"][0],
            json::parse(
                R"({"bytes": 500, "count": 1, "category": null, "line": "/opt/job/train.py:41 step",
              "stack": ["/venv/lib/python3.11/site-packages/torch/nn/f.py:5 relu", "/opt/job/train.py:41 step",
                        "/opt/job/train.py:90 <module>"]})"));
  EXPECT_EQ(cpu["temporaries"]["count"], 1);
  EXPECT_EQ(cpu["temporaries"]["bytes"], 200);
  EXPECT_EQ(report["devices"][1]["holders_at_peak"][0]["stack"], json::array());
  EXPECT_EQ(report["score"]["reason"], "not computed for this input");
  EXPECT_EQ(report["source"]["events"], 6);
}

TEST(JsonReport, ANullHasAReason) {
  MemorySource source = sample_source();
  source.mutable_tables().devices[0].size_is_requested = false;
  const json report = json_of(source);
  const json& device = report["devices"][0];
  EXPECT_EQ(device["peak"]["basis"], "allocated");
  EXPECT_EQ(device["peak"]["allocated_bytes"], 1000);
  EXPECT_EQ(device["peak_allocated"]["allocated_bytes"], 1000);
  EXPECT_TRUE(device["peak"]["requested_bytes"].is_null());
  for (const char* key :
       {"requested_bytes", "reserved_bytes", "end.active_bytes", "end.segments", "replay"}) {
    EXPECT_TRUE(device["unknown"].contains(key)) << key;
  }
  EXPECT_TRUE(report["devices"][1]["unknown"].contains("time_us"))
      << "process 12 knows no wall clock";
}

TEST(JsonReport, NamesThatAreNotUtf8StillGiveJson) {
  MemorySource source = sample_source();
  source.mutable_tables().processes[0].command = "a\xff\"\n";
  EXPECT_EQ(json_of(source)["processes"][0]["command"], "a\xef\xbf\xbd\"\n");
}

}  // namespace
}  // namespace gpumemprof
