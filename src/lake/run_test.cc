// A recording of our own making as tables: every value by arithmetic on what was put in.
#include "lake/run.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using for_tests::FakeProbe;
using Row = std::map<std::string, std::string>;

/// All rows as text; unknown values are not there.
std::vector<Row> all_rows(const LakeRun& run, std::string_view table, size_t memory = 0) {
  std::vector<Row> out;
  const auto rows = run.rows(table, memory);
  if (!rows) return out;
  for (;;) {
    LakeBatch batch = rows->columns();
    rows->fill(&batch);
    if (rows_of(batch) == 0) return out;
    for (size_t row = 0; row < rows_of(batch); ++row) {
      Row& one = out.emplace_back();
      for (const LakeColumn& column : batch) {
        EXPECT_EQ(column.rows, batch[0].rows) << column.name;
        if (!column.is_known(row)) continue;
        one[column.name] = column.is_text ? std::string(column.text(row))
                                          : std::to_string(column.numbers[row]);
      }
    }
  }
}

class LakeTest : public testing::Test {
 protected:
  std::unique_ptr<LakeRun> read(FakeProbe& probe, const std::string& name = "a.gmp") {
    EXPECT_EQ(probe.save(folder_.file(name)), 0);
    auto run = LakeRun::read({folder_.file(name)}, {.seal = false}, {});
    EXPECT_TRUE(run) << run.error().message;
    return std::move(*run);
  }
  for_tests::TempFolder folder_;
};

TEST_F(LakeTest, AnAllocationIsARowWithItsBirthAndDeath) {
  FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  const uint32_t stack = probe.define_stack(&thread, {"main", "make"}, 7);
  probe.alloc(&thread, 1000, 0x1000, 64, stack);  // event 1
  probe.alloc(&thread, 1010, 0x2000, 100, stack);
  probe.free(&thread, 1020, 0x1000);
  probe.alloc(&thread, 1030, 0x1000, 7, 0);
  const auto run = read(probe);
  ASSERT_EQ(run->memories().size(), 1u);
  const auto rows = all_rows(*run, "intervals");
  ASSERT_EQ(rows.size(), 3u);
  const auto expect = [&](size_t i, Row wanted) {
    for (const auto& [name, value] : wanted) EXPECT_EQ(rows[i].at(name), value) << i << name;
  };
  expect(0, {{"birth_event", "1"}, {"death_event", "3"}, {"birth_time_ns", "1000"},
             {"death_time_ns", "1020"}, {"size_bytes", "64"}, {"address", "4096"},
             {"thread", "11"}});
  expect(1, {{"birth_event", "2"}, {"birth_time_ns", "1010"}, {"size_bytes", "100"}});
  expect(2, {{"birth_event", "4"}, {"size_bytes", "7"}, {"stack", "0"}});
  EXPECT_FALSE(rows[1].contains("death_event"));
  EXPECT_FALSE(rows[1].contains("death_time_ns"));
  EXPECT_FALSE(rows[1].contains("stream")) << "a CPU has none";
  EXPECT_FALSE(rows[1].contains("category")) << "the program tells none";
  EXPECT_NE(rows[0].at("stack"), "0");
  EXPECT_EQ(rows[0].at("stack"), rows[1].at("stack"));
}

TEST_F(LakeTest, TheRankHasTheFiguresOfItsMemory) {
  FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  probe.alloc(&thread, 1000, 0x1000, 64, 0);
  probe.alloc(&thread, 1010, 0x2000, 100, 0);
  probe.free(&thread, 1020, 0x1000);
  probe.free(&thread, 1030, 0x2000);
  const auto run = read(probe);
  const auto rows = all_rows(*run, "ranks");
  ASSERT_EQ(rows.size(), 1u);
  const Row wanted = {{"device", "cpu"},     {"events", "4"},       {"intervals", "2"},
                      {"peak_bytes", "164"}, {"peak_event", "2"},   {"peak_time_ns", "1010"},
                      {"end_bytes", "0"},    {"before_bytes", "0"}, {"is_main", "1"},
                      {"pid", "100"},        {"size_basis", "requested"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(rows[0].at(name), value) << name;
  EXPECT_FALSE(rows[0].contains("rank"));
  EXPECT_FALSE(rows[0].contains("peak_reserved_bytes"));
  const auto report = run->report();
  ASSERT_TRUE(report);
  EXPECT_EQ(nlohmann::json::parse(*report)["devices"][0]["peak"]["allocated_bytes"], 164)
      << "analyze says the same";
}

TEST_F(LakeTest, StacksAreOutermostFirstAndOnlyThoseOfAllocations) {
  FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  const uint32_t used = probe.define_stack(&thread, {"main", "make"}, 7);
  probe.define_stack(&thread, {"main", "unused"}, 9);
  probe.alloc(&thread, 1000, 0x1000, 64, used);
  const auto run = read(probe);
  const auto rows = all_rows(*run, "stacks");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("depth"), "2");
  const std::string& frames = rows[0].at("frames");
  EXPECT_NE(frames.find("main\x1f"), frames.npos) << frames;
  EXPECT_TRUE(frames.ends_with(":7 make")) << frames;
  EXPECT_EQ(rows[0].at("line").substr(rows[0].at("line").rfind(' ')), " make");
}

TEST_F(LakeTest, StepsEndWhereTheProgramSaid) {
  FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  probe.alloc(&thread, 1000, 0x1000, 64, 0);
  probe.mark(&thread, 1005, format::kMarkStep, 0, 4);
  probe.alloc(&thread, 1010, 0x2000, 100, 0);
  probe.mark(&thread, 1015, format::kMarkStep, 0, 5);
  const auto run = read(probe);
  const auto rows = all_rows(*run, "steps");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("step"), "4");
  EXPECT_EQ(rows[0].at("end_event"), "1");
  EXPECT_FALSE(rows[0].contains("begin_event"));
  EXPECT_EQ(rows[1].at("begin_event"), "1");
  EXPECT_EQ(rows[1].at("end_event"), "2");
  const auto intervals = all_rows(*run, "intervals");
  EXPECT_FALSE(intervals[0].contains("step")) << "before the first end of a step";
  EXPECT_EQ(intervals[1].at("step"), "5");
}

TEST_F(LakeTest, SlicesTellHowFarTheLevelWentAndWhereItEnded) {
  FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  constexpr uint64_t kSlice = 65'536;
  probe.alloc(&thread, 3 * kSlice, 0x1000, 100, 0);
  probe.alloc(&thread, 3 * kSlice + 1, 0x2000, 40, 0);
  probe.free(&thread, 3 * kSlice + 2, 0x1000);
  probe.free(&thread, 5 * kSlice, 0x2000);
  const auto run = read(probe);
  const auto rows = all_rows(*run, "slices");
  ASSERT_EQ(rows.size(), 2u + (rows[0].contains("slice") ? 0 : 1));
  const Row &first = rows[rows.size() - 2], &second = rows.back();
  EXPECT_EQ(first.at("slice_ns"), "65536");
  EXPECT_EQ(first.at("net_bytes"), "40");
  EXPECT_EQ(first.at("rise_bytes"), "140");
  EXPECT_EQ(second.at("net_bytes"), "-40");
  EXPECT_EQ(second.at("rise_bytes"), "0");
  // On the wall clock, whose offset the recording has.
  EXPECT_EQ(std::stoll(second.at("slice")) - std::stoll(first.at("slice")), 2);
}

TEST_F(LakeTest, MoreRowsThanABatchComeInSeveral) {
  FakeProbe probe(0x1234, 100, 4096);
  auto& thread = probe.start_thread(11, "main");
  const size_t count = LakeRows::kMostRows + 5;
  for (size_t i = 0; i < count; ++i) probe.alloc(&thread, 1000 + i, 0x1000 * (i + 1), i + 1, 0);
  const auto run = read(probe);
  const auto rows = run->rows("intervals", 0);
  LakeBatch first = rows->columns(), second = rows->columns(), third = rows->columns();
  rows->fill(&first), rows->fill(&second), rows->fill(&third);
  EXPECT_EQ(rows_of(first), LakeRows::kMostRows);
  EXPECT_EQ(rows_of(second), 5u);
  EXPECT_EQ(rows_of(third), 0u);
}

TEST_F(LakeTest, ATableThatThereIsNotIsNone) {
  FakeProbe probe(0x1234, 100, 64);
  probe.alloc(&probe.start_thread(11, "main"), 1000, 0x1000, 64, 0);
  const auto run = read(probe);
  EXPECT_EQ(run->rows("nothing", 0), nullptr);
  EXPECT_EQ(run->rows("intervals", 1), nullptr);
}

TEST_F(LakeTest, WhatCannotBeReadIsAnError) {
  const auto run = LakeRun::read({folder_.file("none.gmp")}, {.seal = false}, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace gpumemprof
