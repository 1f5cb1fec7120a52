#include "report/text_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/run_summary.h"
#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(TextReport, TheAnswerIsInTheFirstFiveLines) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const std::string text = text_report(analysis, source.tables(), {.working_folder = "/opt/job"});
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_GE(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "Peak 1000 B on cpu, 2.500 s after the first event, process 11 (python train.py)");
  EXPECT_EQ(lines[1], "      700 B  70.0 %  train.py:41 step");
  EXPECT_EQ(lines[2], "      300 B  30.0 %  model.py:7 Model.__init__");
  EXPECT_EQ(lines[3], "Nothing was lost.");
  EXPECT_THAT(lines[4], HasSubstr("Note: 1 free of blocks whose allocation was not recorded"));
  EXPECT_THAT(text,
              HasSubstr("process 12 (worker) has no stacks (none: no Python in the process)"));
  EXPECT_THAT(text, HasSubstr("1 of 3 allocations (33.3 %), 200 B in all"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TextReport, AFindingOfOneOfSeveralProcessesNamesIt) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  const uint16_t device = analysis.devices.front().device;
  analysis.findings.push_back({.title = "memory swings by 2 B", .device = device});
  const auto pid = source.tables().processes[source.tables().devices[device].process].pid;
  EXPECT_THAT(text_report(analysis, source.tables(), {}),
              HasSubstr("process " + std::to_string(pid) + ", cpu: memory swings by 2 B.\n"));
}

TEST(TextReport, FramesOfLibrariesAreCountedUnlessAllAreAskedFor) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  EXPECT_THAT(text_report(analysis, source.tables(), {}), Not(HasSubstr("/usr/lib")));
  const std::string full = text_report(analysis, source.tables(), {.full_stacks = true});
  EXPECT_THAT(full, HasSubstr("/venv/lib/python3.11/site-packages/torch/nn/f.py:9 gelu\n"
                              "               /usr/lib/python3.11/functools.py:2 call\n"
                              "               /opt/job/train.py:41 step\n"
                              "               /opt/job/train.py:90 <module>\n"));
}

TEST(TextReport, LossesAreStatedWithTheirReasons) {
  MemorySource source = sample_source();
  for (int i = 0; i < 5; ++i)
    source.mutable_loss().add(1, 10, "reason " + std::to_string(i) + "\x1b[2J");
  const Analysis analysis = analyze_all(source);
  const std::string text = text_report(analysis, source.tables(), {});
  EXPECT_THAT(text, HasSubstr("LOST: 5 events, 50 B of the file unreadable: reason 0"));
  EXPECT_THAT(text, HasSubstr("and 2 more reasons."));
  EXPECT_THAT(text, HasSubstr("What was lost or not seen"));
  EXPECT_THAT(text, HasSubstr("reason 4"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TextReport, NothingRecordedIsSaid) {
  MemorySource source{EventBatch{}};
  EXPECT_THAT(text_report(analyze_all(source), source.tables(), {}), HasSubstr("No events"));
}

TEST(RunSummary, HasAtMostTwelveMarkedLinesAndEndsWithTheNextCommand) {
  MemorySource source = sample_source();
  source.mutable_loss().add(3, 0, "the disk was full");
  source.mutable_loss().add(0, 0, "not recorded: process 0 (sudo x): as below");
  const Analysis analysis = analyze_all(source);
  RunSummaryContext context{.folder = "my recording", .working_folder = "/opt/job"};
  for (int i = 0; i < 20; ++i)
    context.not_recorded.push_back("process " + std::to_string(i) + ": sudo\n");
  const std::string text = run_summary(analysis, source.tables(), analysis.loss, context);
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_LE(lines.size(), 12u);
  for (const std::string& line : lines) EXPECT_TRUE(line.starts_with("gpumemprof: ")) << line;
  EXPECT_THAT(lines[0], HasSubstr("Peak 1000 B on cpu, 2.500 s after the first event"));
  EXPECT_THAT(lines[1], HasSubstr("700 B  70.0 %  train.py:41 step"));
  EXPECT_THAT(text, HasSubstr("LOST: 3 events: the disk was full (3 events).\n"));
  EXPECT_THAT(text, HasSubstr("Not recorded: process 0: sudo"));
  EXPECT_EQ(lines.back(), "gpumemprof: Next: gpumemprof analyze 'my recording'");
  EXPECT_THAT(lines[lines.size() - 2], testing::MatchesRegex("gpumemprof: and [0-9]+ more"));
}

TEST(RunSummary, WhereAProcessIsMissingItDoesNotSayThatNothingWasLost) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const RunSummaryContext context{.folder = "r", .not_recorded = {"pid 5 (x): it runs as user 7"}};
  const std::string text = run_summary(analysis, source.tables(), Loss{}, context);
  EXPECT_THAT(text, HasSubstr("Not complete: not every process was recorded.\n"));
  EXPECT_THAT(text, Not(HasSubstr("Nothing was lost")));
}

TEST(RunSummary, WithoutAnAllocationItSaysSo) {
  MemorySource source{EventBatch{}};
  const Analysis analysis = analyze_all(source);
  const std::string text = run_summary(analysis, source.tables(), analysis.loss, {.folder = "r"});
  EXPECT_THAT(text, HasSubstr("No allocation was recorded."));
  EXPECT_THAT(text, Not(HasSubstr("Out of memory")));
}

TEST(RunSummary, SaysWhereAnOutOfMemoryErrorLeftWhatHeldTheMemory) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const std::string text = run_summary(analysis, source.tables(), analysis.loss,
                                       {.folder = "r", .oom_bundle = "r/oom_dumps/of mine"});
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_LE(lines.size(), 12u);
  EXPECT_THAT(text, HasSubstr("gpumemprof: What held the memory is in "
                              "'r/oom_dumps/of mine'\n"));
  EXPECT_EQ(lines.back(), "gpumemprof: Next: gpumemprof analyze r");
}

TEST(RunSummary, TellsOfTheWholeProcessWhereTensorsAreLessThanHalfOfIt) {
  MemorySource source = sample_source();  // a peak of 1000 B
  const Analysis analysis = analyze_all(source);
  const auto told = [&](std::optional<uint64_t> resident_bytes) {
    return run_summary(analysis, source.tables(), analysis.loss,
                       {.folder = "r", .resident_bytes = resident_bytes});
  };
  constexpr const char* kLine = "gpumemprof: The largest process had 1.96 KiB resident at most.\n";
  EXPECT_THAT(told(2002), HasSubstr(kLine)) << "2002 / 2 > 1000";
  EXPECT_THAT(told(2001), Not(HasSubstr("resident")));
  EXPECT_THAT(told(std::nullopt), Not(HasSubstr("resident")));
}

TEST(RunSummary, ALeakOfAFewBytesIsNotTheLastLine) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  analysis.devices[0].figures.peak_bytes = 100'000'000;
  const auto last_line = [&](uint64_t bytes) {
    analysis.findings = {{.kind = FindingKind::kLeak, .severity = Severity::kWarning,
                          .title = "a.py:1 keeps 2 B more with every step", .bytes = bytes},
                         {.kind = FindingKind::kSteadyGrowth, .severity = Severity::kWarning,
                          .title = "memory grows", .bytes = 9}};
    return lines_of(run_summary(analysis, source.tables(), analysis.loss, {.folder = "r"})).back();
  };
  EXPECT_EQ(last_line(99'999), "gpumemprof: Warning: memory grows.") << "below a thousandth";
  EXPECT_EQ(last_line(100'000), "gpumemprof: Leak: a.py:1 keeps 2 B more with every step.");
  analysis.devices[0].figures.peak_bytes = 100'000'000'000;
  EXPECT_EQ(last_line(1 << 20), "gpumemprof: Leak: a.py:1 keeps 2 B more with every step.")
      << "1 MiB is news beside any peak";
}

}  // namespace
}  // namespace gpumemprof
