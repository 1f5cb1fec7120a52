#include "analysis/compare/diff.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// A run whose stacks are given as frames, outermost first, and whose blocks are never freed.
struct TestRun {
  using Frames = std::vector<std::tuple<std::string, uint32_t, std::string>>;

  void alloc(const Frames& frames, uint64_t size) {
    uint32_t stack = 0;
    for (const auto& [file, line, function] : frames) {
      stack = tables.stacks.push(
          stack, tables.stacks.intern_frame(
                     {tables.strings.intern(file), tables.strings.intern(function), line}));
    }
    address += 0x1000;
    append(&events, {events.size() + 1, Action::kAlloc, address, size, stack});
  }
  void free_last() { append(&events, {events.size() + 1, Action::kFreeCompleted, address, 0, 0}); }

  DiffSide read() {
    MemorySource source(events);
    tables.devices = {{.process = 0, .size_is_requested = true}};
    source.mutable_tables() = tables;
    analysis = *analyze_source(source, {});
    return {&analysis, &tables, main_device(analysis, tables)};
  }

  EventBatch events;
  Tables tables;
  Analysis analysis;
  uint64_t address = 0;
};

TEST(Diff, TheSameStackAlignsThoughItsFilesLieElsewhere) {
  TestRun a, b;
  a.alloc({{"/srv/one/train.py", 9, "main"},
           {"/venv1/lib/python3.11/site-packages/torch/nn/f.py", 5, "relu"}},
          100);
  b.alloc({{"/opt/two/train.py", 9, "main"},
           {"/v/lib/python3.12/site-packages/torch/nn/f.py", 5, "relu"}},
          160);
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_stack.size(), 1u);
  EXPECT_EQ(diff.by_stack[0].a.peak_bytes, 100u);
  EXPECT_EQ(diff.by_stack[0].b.peak_bytes, 160u);
  EXPECT_EQ(diff.by_stack[0].peak_delta(), 60);
  EXPECT_EQ(diff.by_stack[0].change(), Change::kGrew);
  EXPECT_TRUE(diff.by_stack[0].from_b);
}

TEST(Diff, StacksThatOnlyAllocatedHaveNoRowWhereLiveOnesAreAskedFor) {
  const auto line = [](uint32_t number) {
    return TestRun::Frames{{"/srv/train.py", number, "step" + std::to_string(number)}};
  };
  TestRun a, b;
  a.alloc(line(9), 100);
  a.alloc(line(10), 30), a.free_last();  // live at the peak of A
  a.alloc(line(12), 7), a.free_last();   // never at a peak
  a.alloc(line(11), 5), a.free_last();   // live at the peak of B
  b.alloc(line(9), 160);
  b.alloc(line(12), 8), b.free_last();
  b.alloc(line(11), 40);
  const DiffSide sides[] = {a.read(), b.read()};
  const auto rows_of = [](const Diff& diff) {
    std::map<uint32_t, std::vector<uint64_t>> rows;  // by line: peaks and totals
    for (const DiffRow& row : diff.by_stack) {
      const Tables& tables = *(row.from_b ? diff.b : diff.a).tables;
      rows[tables.stacks.frame_of(row.node).line] = {row.a.peak_bytes, row.b.peak_bytes,
                                                     row.a.total_bytes, row.b.total_bytes};
    }
    return rows;
  };
  std::map<uint32_t, std::vector<uint64_t>> expected = {
      {9, {100, 160, 100, 160}}, {10, {30, 0, 30, 0}}, {11, {0, 40, 5, 40}}};
  const Diff live = diff_runs(sides[0], sides[1], DiffStacks::kLive);
  EXPECT_EQ(rows_of(live), expected);
  EXPECT_EQ(live.by_line.size(), 4u);
  expected[12] = {0, 0, 7, 8};
  EXPECT_EQ(rows_of(diff_runs(sides[0], sides[1], DiffStacks::kEvery)), expected);
}

TEST(Diff, ALineIsTheSameWhetherItsFunctionIsToldWithItsClassOrNot) {
  TestRun a, b;
  a.alloc({{"train.py", 23, "PINN.call"}}, 100);
  b.alloc({{"train.py", 23, "call"}}, 60);
  b.alloc({{"train.py", 23, "forecall"}}, 7);
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_line.size(), 2u);
  EXPECT_EQ(diff.by_line[0].a.peak_bytes, 100u);
  EXPECT_EQ(diff.by_line[0].b.peak_bytes, 60u);
  EXPECT_EQ(diff.by_line[1].change(), Change::kAppeared);
  EXPECT_EQ(diff.by_stack.size(), 2u);
}

TEST(Diff, OtherPackagesFilesOfTheSameNameDoNotAlign) {
  TestRun a, b;
  a.alloc({{"/v/site-packages/torch/nn/functional.py", 5, "relu"}}, 100);
  b.alloc({{"/v/site-packages/torchvision/functional.py", 5, "relu"}}, 100);
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_stack.size(), 2u);
  EXPECT_EQ(diff.by_stack[0].change(), Change::kAppeared);
  EXPECT_EQ(diff.by_stack[1].change(), Change::kVanished);
}

TEST(Diff, AMovedLineAlignsWhereItAllocatesAlikeElseByItsFunction) {
  for (const auto& [bytes, lines] : {std::pair(130u, 1u), {500u, 2u}}) {
    TestRun a, b;
    a.alloc({{"/x/model.py", 10, "forward"}}, 100);
    b.alloc({{"/x/model.py", 12, "forward"}}, bytes);
    const Diff diff = diff_runs(a.read(), b.read());
    EXPECT_EQ(diff.by_line.size(), lines) << bytes;
    ASSERT_EQ(diff.by_function.size(), 1u);
    EXPECT_EQ(diff.by_function[0].peak_delta(), bytes - 100);
  }
}

TEST(Diff, ThePeakAndTheEndAreToldApart) {
  TestRun a, b;
  a.alloc({{"t.py", 1, "f"}}, 100);
  a.free_last();
  b.alloc({{"t.py", 1, "f"}}, 100);
  for (TestRun* run : {&a, &b}) run->alloc({{"t.py", 2, "g"}}, 0);
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_line.size(), 2u);
  EXPECT_EQ(diff.by_line[0].peak_delta(), 0);
  EXPECT_EQ(diff.by_line[0].end_delta(), 100);
  EXPECT_EQ(diff.by_line[0].change(), Change::kSame);
}

TEST(Diff, WhatIsFreedAfterTheLastAllocationIsThereAtTheEnd) {
  TestRun a, b;
  a.alloc({{"t.py", 1, "f"}}, 100);
  b.alloc({{"t.py", 1, "f"}}, 170);
  for (TestRun* run : {&a, &b}) run->free_last();  // as the program exits
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_line.size(), 1u);
  EXPECT_EQ(diff.by_line[0].end_delta(), 70);
  EXPECT_EQ(bytes_before_exit(*diff.a.device), 100);
  EXPECT_EQ(diff.a.device->figures.live_bytes, 0);
}

TEST(Diff, WhatWasAllocatedButNotAtThePeakHasNotAppeared) {
  TestRun a, b;
  a.alloc({{"t.py", 1, "small"}}, 10);
  a.free_last();
  a.alloc({{"t.py", 2, "big"}}, 100);
  b.alloc({{"t.py", 1, "small"}}, 10);
  b.alloc({{"t.py", 2, "big"}}, 100);
  const Diff diff = diff_runs(a.read(), b.read());
  EXPECT_EQ(diff.by_line[0].peak_delta(), 10);
  EXPECT_EQ(diff.by_line[0].change(), Change::kGrew);
}

TEST(Diff, ARunAgainstNothingIsAllNews) {
  TestRun a, b;
  b.alloc({{"t.py", 1, "f"}}, 7);
  b.alloc({}, 5);  // without a stack
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_line.size(), 2u);
  EXPECT_EQ(diff.a.device, nullptr);
  EXPECT_EQ(diff.by_line[0].change(), Change::kAppeared);
  EXPECT_EQ(diff.by_line[1].node, 0u);
  EXPECT_EQ(diff.by_line[1].peak_delta(), 5);
}

TEST(Diff, EveryAlignmentAddsUpToBothPeaks) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    TestRun runs[2];
    std::map<std::string, uint64_t> truth[2];  // by the text of the aligned stack
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < 60; ++i) {
        TestRun::Frames frames;
        std::string text;
        for (uint32_t depth = random() % 4; depth-- > 0;) {
          const uint32_t line = random() % 3;
          frames.emplace_back("/home" + std::to_string(side) + "/m.py", line, "f");
          text += "m.py:" + std::to_string(line) + ';';
        }
        const uint64_t size = random() % 1000;
        runs[side].alloc(frames, size);
        truth[side][text] += size;
      }
    }
    const Diff diff = diff_runs(runs[0].read(), runs[1].read());
    for (const auto& row : diff.by_stack) {
      std::string text;
      const Tables& tables = *(row.from_b ? diff.b : diff.a).tables;
      for (uint32_t node = row.node; node != 0; node = tables.stacks.node(node).parent) {
        const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
        text = "m.py:" + std::to_string(frame.line) + ';' + text;
      }
      ASSERT_EQ(row.a.peak_bytes, truth[0].contains(text) ? truth[0][text] : 0) << seed << text;
      ASSERT_EQ(row.b.peak_bytes, truth[1].contains(text) ? truth[1][text] : 0) << seed << text;
    }
    for (const auto* rows : {&diff.by_stack, &diff.by_line, &diff.by_function}) {
      uint64_t a = 0, b = 0;
      for (const DiffRow& row : *rows) a += row.a.peak_bytes, b += row.b.peak_bytes;
      ASSERT_EQ(a, diff.a.device->figures.peak_bytes);
      ASSERT_EQ(b, diff.b.device->figures.peak_bytes);
    }
  }
}

/// A run of f.py whose lines (number, size) each allocate three times.
TestRun run_of(const std::vector<std::pair<uint32_t, uint64_t>>& lines) {
  TestRun run;
  for (int turn = 0; turn < 3; ++turn)
    for (const auto& [line, size] : lines) run.alloc({{"/w/f.py", line, "step"}}, size);
  return run;
}

/// B's line, A's and B's bytes at the peak, of each row; A's line where B has none.
std::map<uint32_t, std::pair<uint64_t, uint64_t>> by_line(TestRun a, TestRun b, uint64_t moved) {
  const Diff diff = diff_runs(a.read(), b.read());
  EXPECT_EQ(diff.moved_lines, moved);
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> out;
  for (const DiffRow& row : diff.by_line) {
    const Tables& tables = *(row.from_b ? diff.b : diff.a).tables;
    out[tables.stacks.frame(tables.stacks.node(row.node).frame).line] = {row.a.peak_bytes, row.b.peak_bytes};
  }
  return out;
}

TEST(MovedLines, OfAFunctionWithALineMoreAtItsBeginAreTheSameLines) {
  using Rows = std::map<uint32_t, std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(by_line(run_of({{12, 10}, {13, 500}, {14, 90}}), run_of({{13, 10}, {14, 500}, {15, 90}}), 3),
            (Rows{{13, {30, 30}}, {14, {1500, 1500}}, {15, {270, 270}}}));
  // The one between them is what was changed; it allocates less.
  EXPECT_EQ(by_line(run_of({{12, 10}, {13, 500}, {14, 90}}), run_of({{13, 10}, {14, 20}, {15, 90}}), 3),
            (Rows{{13, {30, 30}}, {14, {1500, 60}}, {15, {270, 270}}}));
  // A new one between them: what is above it keeps its number.
  EXPECT_EQ(by_line(run_of({{5, 10}, {6, 500}, {7, 90}}), run_of({{5, 10}, {6, 3000}, {7, 500}, {8, 90}}), 2),
            (Rows{{5, {30, 30}}, {6, {0, 9000}}, {7, {1500, 1500}}, {8, {270, 270}}}));
}

TEST(MovedLines, OfTwoBatchSizesAndOfABranchThatOneRunTookKeepTheirNumbers) {
  using Rows = std::map<uint32_t, std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(by_line(run_of({{5, 10}, {6, 10}, {7, 10}}), run_of({{5, 20}, {6, 20}, {7, 20}, {8, 10}}), 0),
            (Rows{{5, {30, 60}}, {6, {30, 60}}, {7, {30, 60}}, {8, {0, 30}}}));
  EXPECT_EQ(by_line(run_of({{5, 10}, {7, 40}}), run_of({{5, 10}, {6, 300}, {7, 40}}), 0),
            (Rows{{5, {30, 30}}, {6, {0, 900}}, {7, {120, 120}}}));
}

TEST(Diff, FilesAlignByThePartThatDoesNotDependOnTheMachine) {
  EXPECT_EQ(aligned_file("/a/site-packages/b/site-packages/torch/x.py"), "torch/x.py");
  EXPECT_EQ(aligned_file("/usr/lib/python3/dist-packages/numpy/x.py"), "numpy/x.py");
  EXPECT_EQ(aligned_file("/usr/lib/python3.11/json/decoder.py"), "json/decoder.py");
  EXPECT_EQ(aligned_file("C:\\work\\train.py"), "train.py");
  EXPECT_EQ(aligned_file("C:\\v\\Lib\\site-packages\\torch\\x.py"), "torch\\x.py");
  EXPECT_EQ(aligned_file("/tmp/__main___MyConv_propagate_m13y8gft.py"), "__main___MyConv_propagate");
  EXPECT_EQ(aligned_file("<stdin>"), "<stdin>");
  EXPECT_EQ(aligned_file(""), "");
}

}  // namespace
}  // namespace gpumemprof
