#include "report/diff_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/sample_for_tests.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// The sample of the other reports against a run of the same program elsewhere: train.py:41 holds
/// 1500 bytes instead of 700, model.py:7 nothing, new.py:3 80; none is freed before the last allocation.
class DiffReport : public testing::Test {
 protected:
  DiffReport() : a_(sample_source()), b_(other_source()) {
    a_analysis_ = analyze_all(a_);
    b_analysis_ = analyze_all(b_);
    a_analysis_.source.path = "a<b>";
    b_analysis_.source.path = "b";
    diff_ = diff_runs({&a_analysis_, &a_.tables(), main_device(a_analysis_, a_.tables())},
                      {&b_analysis_, &b_.tables(), main_device(b_analysis_, b_.tables())});
  }

  static MemorySource other_source() {
    EventBatch events;
    append(&events, {1000, Action::kAlloc, 0x10, 1500, 3, 0, 0});
    append(&events, {2000, Action::kAlloc, 0x20, 80, 4, 0, 0});
    append(&events, {3000, Action::kFreeCompleted, 0x10, 0, 0, 0, 0});
    MemorySource source(std::move(events));
    Tables& tables = source.mutable_tables();
    const auto frame = [&](const char* file, uint32_t line, const char* function) {
      return tables.stacks.intern_frame(
          {tables.strings.intern(file), tables.strings.intern(function), line});
    };
    const uint32_t main = tables.stacks.push(0, frame("/srv/job/train.py", 90, "<module>"));
    const uint32_t step = tables.stacks.push(main, frame("/srv/job/train.py", 41, "step"));
    tables.stacks.push(step, frame("/v/lib/python3.12/site-packages/torch/nn/f.py", 5, "relu"));
    tables.stacks.push(main, frame("/srv/job/new.py", 3, "\x1b[2J<b>"));
    tables.processes = {{.pid = 21, .command = "python train.py"}};
    tables.threads = {{.process = 0, .tid = 21}};
    tables.devices = {{.process = 0, .size_is_requested = true}};
    return source;
  }

  MemorySource a_, b_;
  Analysis a_analysis_, b_analysis_;
  Diff diff_;
};

TEST_F(DiffReport, TheAnswerIsInTheFirstFiveLinesOfTheText) {
  const std::string text = diff_text(diff_, {.working_folder = "/srv/job"});
  EXPECT_THAT(
      text,
      testing::StartsWith(
          "B's peak is 580 B (58.0 %) higher: 1000 B -> 1.54 KiB on cpu\n"
          "     change          A          B  line\n"
          "     +800 B      700 B   1.46 KiB  train.py:41 step\n"
          "     -300 B      300 B        0 B  /opt/job/model.py:7 Model.__init__  (vanished)\n"
          "      +80 B        0 B       80 B  new.py:3 \xef\xbf\xbd[2J<b>  (appeared)\n"
          "At the end +580 B: 1000 B -> 1.54 KiB. Lines: 1 grew, 0 shrank, 1 "
          "appeared, 1 vanished.\n"));
  EXPECT_THAT(text, HasSubstr("Note: A: 1 free of blocks whose allocation was not recorded"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(DiffReport, WithoutHistoryThereIsNoPeakAndNoEnd) {
  for (Analysis* one : {&a_analysis_, &b_analysis_}) {
    auto& actions = one->devices[0].figures.actions;
    std::fill(std::begin(actions) + 1, std::end(actions), 0);
  }
  const std::string text = diff_text(diff_, {.working_folder = "/srv/job"});
  EXPECT_THAT(text,
              testing::StartsWith("B holds 580 B (58.0 %) more: 1000 B -> 1.54 KiB on cpu\n"));
  EXPECT_THAT(text, HasSubstr("\nLines: 1 grew, 0 shrank, 1 appeared, 1 vanished.\n"));
  EXPECT_THAT(text, HasSubstr("By line of your code\n"));
}

TEST_F(DiffReport, TheJsonHasEveryStackWithBothSides) {
  const json out = json::parse(diff_json(diff_));
  EXPECT_EQ(out["schema"], "gpumemprof.diff/1");
  EXPECT_EQ(out["peak"], json::parse(R"({"a_bytes": 1000, "b_bytes": 1580, "delta_bytes": 580})"));
  EXPECT_EQ(out["end"]["delta_bytes"], 580);
  EXPECT_EQ(out["a"]["peak_event_index"], 2);
  EXPECT_EQ(out["b"]["process"], 21);
  const json& first = out["by_stack"][0];
  EXPECT_EQ(first["stack"][0], "/v/lib/python3.12/site-packages/torch/nn/f.py:5 relu");
  EXPECT_EQ(first["a_bytes"], 500) << "the other 200 of the line came through another stack";
  EXPECT_EQ(first["b_bytes"], 1500);
  EXPECT_EQ(first["change"], "grew");
  EXPECT_EQ(out["by_line"][0]["a_bytes"], 700);
  EXPECT_EQ(out["by_function"][0]["file"], "train.py");
  int64_t sum = 0;
  for (const json& row : out["by_stack"]) sum += row["delta_bytes"].get<int64_t>();
  EXPECT_EQ(sum, 580);
}

TEST_F(DiffReport, ARunAgainstItselfIsTheSame) {
  const Diff same = diff_runs(diff_.a, diff_.a);
  const std::string text = diff_text(same, {});
  EXPECT_THAT(text,
              testing::StartsWith("A and B have the same peak: 1000 B on cpu\nAt the end both have"));
  EXPECT_THAT(text, HasSubstr("By line of your code, at the peak\n  No difference.\n"));
}

TEST_F(DiffReport, OfASideWithoutAnyAllocationThatIsAllThatIsSaid) {
  DiffSide nothing = diff_.a;
  nothing.device = nullptr;
  EXPECT_THAT(diff_text(diff_runs(nothing, diff_.b), {}),
              testing::StartsWith("Nothing was allocated in A; B has a peak of 1.54 KiB on cpu\n"));
}

/// Two allocators of TensorFlow in one process, and one of another process.
MemorySource two_allocators(uint64_t in_cpu, uint64_t in_mklcpu, uint64_t of_other) {
  EventBatch events;
  append(&events, {1000, Action::kAlloc, 0x10, in_cpu, 0, 0, 0});
  append(&events, {2000, Action::kAlloc, 0x1000, in_mklcpu, 0, 0, 1});
  append(&events, {3000, Action::kAlloc, 0x20, of_other, 0, 0, 2});
  MemorySource source(std::move(events));
  Tables& tables = source.mutable_tables();
  tables.processes = {{.pid = 21, .command = "python t.py"}, {.pid = 22, .command = "python w.py"}};
  tables.threads = {{.process = 0, .tid = 21}};
  tables.devices.resize(3);
  for (Device& device : tables.devices) device.type = kTensorflowCpu;
  tables.devices[0].name = "cpu", tables.devices[1].name = "mklcpu";
  tables.devices[2].name = "cpu", tables.devices[2].process = 1;
  return source;
}

TEST(DiffOfSums, ThePartsOfTheSumThatIsComparedAreCompared) {
  MemorySource a = two_allocators(10, 900, 5), b = two_allocators(30, 900, 5);
  const Analysis a_analysis = analyze_all(a), b_analysis = analyze_all(b);
  const auto diff = [&](const Analysis& of_b, const MemorySource& source_b) {
    return diff_text(
        diff_runs({&a_analysis, &a.tables(), main_device(a_analysis, a.tables())},
                  {&of_b, &source_b.tables(), main_device(of_b, source_b.tables())}),
        {});
  };
  const std::string text = diff(b_analysis, b);
  EXPECT_THAT(text, HasSubstr("910 B -> 930 B on tensorflow:cpu + mklcpu"));
  EXPECT_THAT(text, Not(HasSubstr("Not compared")));
  MemorySource c = two_allocators(30, 900, 7);
  EXPECT_THAT(diff(analyze_all(c), c),
              HasSubstr("Not compared: tensorflow:cpu of other processes, 5 B (A) and 7 B (B).\n"));
}

TEST_F(DiffReport, NothingAllocatedIsSaid) {
  MemorySource empty{EventBatch{}};
  const Analysis analysis = analyze_all(empty);
  const DiffSide nothing{&analysis, &empty.tables(), nullptr};
  const Diff diff = diff_runs(nothing, nothing);
  EXPECT_THAT(diff_text(diff, {}), testing::StartsWith("Nothing was allocated in either run.\n"));
  EXPECT_EQ(json::parse(diff_json(diff))["a"]["device"], nullptr);
}

}  // namespace
}  // namespace gpumemprof
