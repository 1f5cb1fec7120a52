#include "analysis/compare/memory_baseline_file.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

MemoryBaseline kept_baseline() {
  return {.version = "1.2.3",
          .reasons = {{"2026-01-02", "first"}, {"2026-02-03", "a \"larger\"\nmodel"}},
          .subjects = {{.name = "t.py::test_b[x\"y]",
                        .memories = {{.kind = "cuda", .basis = "allocated", .peak_bytes = 512}}},
                       {.name = "",
                        .memories = {{.kind = "cpu",
                                      .basis = "requested",
                                      .peak_bytes = 1000,
                                      .lines = {{.file = "a.py",
                                                 .line = 7,
                                                 .function = "f",
                                                 .source = "x = 'ä'",
                                                 .bytes = 900}},
                                      .other_bytes = 100}}}}};
}

TEST(MemoryBaselineFile, WhatIsWrittenIsRead) {
  const std::string text = baseline_json(kept_baseline());
  const auto read = parse_baseline(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(baseline_json(*read), text);
  ASSERT_EQ(read->reasons.size(), 2u);
  EXPECT_EQ(read->reasons[1].text, "a \"larger\"\nmodel");
  ASSERT_EQ(read->subjects.size(), 2u);
  EXPECT_EQ(read->subjects[0].memories[0].lines[0].source, "x = 'ä'");
  EXPECT_EQ(read->subjects[1].name, "t.py::test_b[x\"y]");
}

TEST(MemoryBaselineFile, ALineOfCodeIsALineOfText) {
  EXPECT_NE(baseline_json(kept_baseline())
                .find("\n        {\"bytes\":900,\"file\":\"a.py\",\"line\":7,\"function\":\"f\","
                      "\"source\":\"x = 'ä'\"}\n"),
            std::string::npos);
}

TEST(MemoryBaselineFile, AMeasurementHasWhatLivedAtTheEnd) {
  const std::vector<PeakSubject> subjects = {
      {.name = "",
       .memories = {{.kind = "cpu",
                     .peak_bytes = 10,
                     .is_exact = false,
                     .lost = "12 events: the disk was full (12 events)",
                     .end_bytes = 4,
                     .lines_at_end = {{.file = "a.py", .line = 1, .bytes = 4}},
                     .before_bytes = 3}}}};
  const auto read = parse_measurement(measurement_json(subjects, "1"));
  ASSERT_TRUE(read) << read.error().message;
  const PeakMemory& memory = read->at(0).memories.at(0);
  EXPECT_EQ(memory.end_bytes, 4u);
  EXPECT_EQ(memory.before_bytes, 3u);
  EXPECT_EQ(memory.lines_at_end.at(0).bytes, 4u);
  EXPECT_FALSE(memory.is_exact);
  EXPECT_EQ(memory.lost, "12 events: the disk was full (12 events)");
  EXPECT_FALSE(parse_baseline(measurement_json(subjects, "1")));
}

TEST(MemoryBaselineFile, WhatIsNoJsonIsRefusedWithTheByte) {
  const auto read = parse_baseline("{\"schema\": \"gpumemprof.memory-baseline/1\", ]");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "is not JSON");
  EXPECT_EQ(read.error().offset, 44u);
}

TEST(MemoryBaselineFile, WhatIsNoBaselineIsRefusedWithWhatIsWrong) {
  const std::string head = R"({"schema": "gpumemprof.memory-baseline/1", )";
  for (const auto& [text, said] : {
           std::pair<std::string, const char*>{"[]", "is no baseline of gpumemprof gate"},
           {"{}", "is no baseline of gpumemprof gate"},
           {R"({"schema": "gpumemprof.memory-baseline/2"})",
            "was written by a later version of gpumemprof"},
           {head + R"("program": 3})", "its program is not an object of devices"},
           {head + R"("program": {"cpu": {}}})",
            "its program: \"cpu\": its peak_bytes is not a number of bytes"},
           {head + R"("program": {"cpu": {"peak_bytes": -1}}})",
            "its program: \"cpu\": its peak_bytes is not a number of bytes"},
           {head + R"("program": {"cpu": {"peak_bytes": 1e30}}})",
            "its program: \"cpu\": its peak_bytes is not a number of bytes"},
           {head + R"("program": {"cpu": {"peak_bytes": 1e400}}})",
            "has a number that is too large"},
           {head + R"("tests": []})", "its tests are not an object of at most 100000"},
           {head + R"("tests": {"a": {"cpu": {"peak_bytes": 1, "lines": [{}]}}}})",
            "its test \"a\": \"cpu\": one of its lines has no bytes or no number"},
       }) {
    const auto read = parse_baseline(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message, said) << text;
  }
}

TEST(MemoryBaselineFile, DeepNestingIsReadInSteadyTime) {
  const auto read = parse_baseline(std::string(1 << 20, '['));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "is not JSON");
}

TEST(MemoryBaselineFile, OnlyTheNewestReasonsAreKept) {
  MemoryBaseline baseline;
  for (size_t i = 0; i < kMostReasons + 5; ++i)
    baseline.reasons.push_back({"2026-01-01", std::to_string(i)});
  const auto read = parse_baseline(baseline_json(baseline));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reasons.size(), kMostReasons);
  EXPECT_EQ(read->reasons.front().text, "5");
}

}  // namespace
}  // namespace gpumemprof
