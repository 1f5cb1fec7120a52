#include "analysis/leaks/leak_findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/finding_figure.h"
#include "recording/holders_file.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// A program of one process. Its line 7 keeps a block in each step, and its line 8 makes one that
/// comes and goes.
struct Program {
  uint64_t steps = 100;
  uint64_t keeps_bytes = 0;
  uint64_t variable_bytes = 0;  ///< of line 7, too: it is there until the next step has its own
  uint64_t weights_bytes = 0;   ///< before the first step, on line 9
  uint64_t joined_bytes = 0;    ///< after the last step, on line 10
  bool has_marks = false;
  uint64_t keeps_every = 1;  ///< steps
  /// A look after so many steps reaches all that is live of line 7; 0: there is none.
  uint64_t looked_after = 0;
  /// Of these, what a variable holds; the rest have a name of their own each.
  uint64_t held_blocks = UINT64_MAX;
  uint64_t held_tensors = 0;
  std::string why_incomplete;
  bool is_used = false;  ///< each step's graph saves all that line 7 has kept
  std::string owner = "variable";  ///< of the look's first holder, which an exception's weights have, too
  bool is_killed = false;          ///< by the kernel, for want of its cgroup's memory
};

/// What is said of line 7.
std::vector<Finding> findings_of(const Program& program) {
  Tables tables;
  tables.processes.push_back({.pid = 5, .start_ticks = 6});
  tables.threads.resize(1);
  tables.devices.push_back({.type = 0, .size_is_requested = true});
  std::vector<ProcessHolders> told(1);
  told[0].pid = 5, told[0].start_ticks = 6;
  const uint32_t file = tables.strings.intern("/srv/me/train.py");
  const auto line = [&](uint32_t number) {
    return tables.stacks.push(0, tables.stacks.intern_frame({.file = file, .line = number}));
  };
  const uint32_t keeps = line(7), drops = line(8), makes = line(9), joins = line(10);
  EventBatch events;
  uint64_t time = 0;
  const auto allocate = [&](uint64_t address, uint64_t bytes, uint32_t stack) {
    if (bytes == 0) return;
    append(&events, {.time_ns = ++time, .address = address, .size_bytes = bytes, .stack = stack});
  };
  const auto free = [&](uint64_t address) {
    append(&events, {.time_ns = ++time, .action = Action::kFreeCompleted, .address = address});
  };
  allocate(2, program.weights_bytes, makes);
  for (uint64_t step = 0; step < program.steps; ++step) {
    allocate(10 + step % 2, program.variable_bytes, keeps);
    if (program.variable_bytes != 0 && step != 0) free(11 - step % 2);
    allocate(1, 5000, drops);
    if (step % program.keeps_every == 0) allocate(100 + step, program.keeps_bytes, keeps);
    free(1);
    if (step + 1 == program.looked_after) {
      HoldersLook& look = told[0].looks.emplace_back();
      look.time_ns = time, look.why_incomplete = program.why_incomplete;
      look.holders.push_back(
          {.path = "kept in main (train.py)", .name = "kept", .owner = program.owner});
      look.holders.back().tensors = program.held_tensors;
      if (program.owner == "exception") look.by_address[2] = 0;
      for (uint64_t made = 0; made <= step; made += program.keeps_every) {
        const bool is_held = made / program.keeps_every < program.held_blocks;
        look.by_address[100 + made] =
            is_held ? 0 : static_cast<uint32_t>(look.holders.size());
        if (!is_held) look.holders.push_back({.name = "x", .owner = "variable"});
      }
    }
    const auto end = static_cast<uint32_t>(events.size());
    for (uint64_t made = 0; made <= step && program.is_used; made += program.keeps_every)
      events.marks.push_back(
          {.before_event = end, .kind = MarkKind::kSaved, .address = 100 + made});
    if (program.has_marks) events.marks.push_back({.before_event = end, .kind = MarkKind::kStep});
  }
  allocate(3, program.joined_bytes, joins);
  MemorySource source(std::move(events));
  source.mutable_tables() = std::move(tables);
  AnalysisOptions options;
  options.find_leaks = true;
  if (program.looked_after != 0) options.holders = &told;
  const ProgramEnds ends{
      .runs = {{.signal = "SIGKILL", .kernel_kills = 1, .kills_are_of_cgroup = true}}};
  if (program.is_killed) options.ends = &ends;
  std::vector<Finding> out = analyze_source(source, options)->findings;
  std::erase_if(out, [&](const Finding& one) { return one.stack != keeps; });
  return out;
}

TEST(LeakFindings, LessThanOneNumberAStepIsNoFinding) {
  EXPECT_EQ(findings_of({.keeps_bytes = 4}).size(), 1u);
  EXPECT_EQ(findings_of({.keeps_bytes = 3}).size(), 0u);
}

TEST(LeakFindings, WhatAVariableHasUntilTheNextStepIsNotKept) {
  const Program program{.keeps_bytes = 256, .variable_bytes = 3 << 19, .weights_bytes = 50 << 20};
  const std::vector<Finding> found = findings_of(program);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, 100u * 256);
}

/// As a jitted function of JAX, of which one stack makes the new weights and what is kept.
TEST(LeakFindings, WeightsThatEachStepReplacesAreNotKeptThoughAWindowGoesOnAfterAStep) {
  constexpr uint64_t kWeights = 24, kSteps = 40;
  Tables tables;
  tables.processes.resize(1), tables.threads.resize(1);
  tables.devices.push_back({.type = 0, .size_is_requested = true});
  const uint32_t file = tables.strings.intern("/srv/me/train.py");
  const auto line = [&](uint32_t number) {
    return tables.stacks.push(0, tables.stacks.intern_frame({.file = file, .line = number}));
  };
  const uint32_t call = line(7), work = line(8);
  EventBatch events;
  uint64_t time = 0;
  const auto allocate = [&](uint64_t address, uint64_t bytes, uint32_t stack) {
    append(&events, {.time_ns = ++time, .address = address, .size_bytes = bytes, .stack = stack});
  };
  const auto free = [&](uint64_t address) {
    append(&events, {.time_ns = ++time, .action = Action::kFreeCompleted, .address = address});
  };
  const auto weight = [](uint64_t step, uint64_t i) { return 100 * (1 + step % 2) + i; };
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (uint64_t i = 0; i < kWeights; ++i) allocate(weight(step, i), 2000, call);
    allocate(1000 + step, 64, call);
    for (int i = 0; i < 200; ++i) allocate(1, 50, work), free(1);
    for (uint64_t i = 0; step != 0 && i < kWeights; ++i) free(weight(step - 1, i));
    events.marks.push_back({.before_event = static_cast<uint32_t>(events.size())});
  }
  MemorySource source(std::move(events));
  source.mutable_tables() = std::move(tables);
  AnalysisOptions options;
  options.find_leaks = true;
  const Analysis analysis = *analyze_source(source, options);
  const auto leak = std::ranges::find(analysis.findings, FindingKind::kLeak, &Finding::kind);
  ASSERT_NE(leak, analysis.findings.end());
  EXPECT_EQ(*find_figure(*leak, "bytes_a_step"), 64u);
  EXPECT_EQ(leak->bytes, kSteps * 64) << "and no weights of the last step or the one before";
  EXPECT_EQ(leak_bytes_at_peak(*leak, analysis.devices[0]), kSteps * 64);
  EXPECT_TRUE(is_small_part_of_peak(*leak, analysis.devices[0]));
}

TEST(LeakFindings, WhatIsJoinedAfterTheLastRoundIsNoFindingThoughTheLineHasAVariable) {
  Program program{.keeps_bytes = 256, .variable_bytes = 3 << 19};
  program.joined_bytes = 100 * 256;
  EXPECT_EQ(findings_of(program).size(), 0u);
  program.joined_bytes = 99 * 256;
  EXPECT_EQ(findings_of(program).size(), 1u);
}

TEST(LeakFindings, ASmallLeakIsAWarningIfTenThousandStepsMakeItATenthOfThePeak) {
  const auto severity = [](uint64_t keeps_bytes, uint64_t steps) {
    const std::vector<Finding> found = findings_of({.steps = steps,
                                                    .keeps_bytes = keeps_bytes,
                                                    .weights_bytes = uint64_t{100} << 20,
                                                    .has_marks = true});
    return found.size() == 1 ? found[0].severity : Severity::kCritical;
  };
  EXPECT_EQ(severity(1'000, 100), Severity::kInfo) << "97.7 KiB, and 9.5 MiB in the long run";
  EXPECT_EQ(severity(1'060, 90), Severity::kWarning) << "93.2 KiB, and 10.1 MiB in the long run";
  EXPECT_EQ(severity(1'000, 120), Severity::kWarning) << "117 KiB are 0.11 % of the peak";
}

TEST(LeakFindings, WhatHadLittleOfThePeakDidNotEndAProgram) {
  const auto severity = [](uint64_t keeps_bytes) {
    const std::vector<Finding> found = findings_of({.keeps_bytes = keeps_bytes,
                                                    .weights_bytes = 9'000'000,
                                                    .has_marks = true,
                                                    .is_killed = true});
    return found.size() == 1 ? found[0].severity : Severity::kInfo;
  };
  EXPECT_EQ(severity(9'000), Severity::kWarning) << "0.9 MB of 9.9 MB";
  EXPECT_EQ(severity(11'000), Severity::kCritical) << "1.1 MB of 10.1 MB";
}

/// 100 blocks of 1000 bytes, and one of 900,000 that was there before.
TEST(LeakFindings, AllThatExceptionsKeepIsTheirLeak) {
  const auto found_of = [](const char* owner) {
    return findings_of({.keeps_bytes = 1'000,
                        .weights_bytes = 900'000,
                        .has_marks = true,
                        .looked_after = 100,
                        .owner = owner});
  };
  const std::vector<Finding> of_list = found_of("variable"), of_exceptions = found_of("exception");
  ASSERT_EQ(of_list.size(), 1u);
  EXPECT_EQ(of_list[0].bytes, 100'000u);
  ASSERT_EQ(of_exceptions.size(), 1u);
  EXPECT_EQ(of_exceptions[0].bytes, 1'000'000u);
  EXPECT_TRUE(of_exceptions[0].title.starts_with("train.py:7 keeps at least 1000 B more with every"))
      << of_exceptions[0].title;
}

TEST(LeakFindings, WhatComesAFewTimesAndIsHeldByNameMayBeResults) {
  const auto told_of = [](uint64_t times, uint64_t apart, bool is_looked_at) {
    const uint64_t steps = times * apart;
    const std::vector<Finding> found = findings_of({.steps = steps,
                                                    .keeps_bytes = 2 << 20,
                                                    .has_marks = true,
                                                    .keeps_every = apart,
                                                    .looked_after = is_looked_at ? steps : 0});
    return found.size() == 1 ? found[0] : Finding{.title = std::to_string(found.size())};
  };
  const Finding few = told_of(8, 12, true);
  EXPECT_EQ(few.kind, FindingKind::kGrowthInLoop);
  EXPECT_EQ(few.severity, Severity::kInfo);
  EXPECT_EQ(few.title,
            "train.py:7 keeps 2.00 MiB more once in 12 steps, 8 times: it may be a result that is "
            "needed");
  EXPECT_EQ(told_of(9, 12, true).severity, Severity::kWarning) << "many epochs";
  EXPECT_EQ(told_of(8, 3, true).severity, Severity::kWarning) << "every few steps";
  EXPECT_EQ(told_of(8, 12, false).severity, Severity::kWarning) << "nobody knows who holds it";
}

TEST(LeakFindings, WhatLaterStepsUseAFewTimesMayBeNeededThoughNobodyKnowsWhoHoldsIt) {
  const auto told_of = [](uint64_t times, bool is_used) {
    const std::vector<Finding> found = findings_of({.steps = 15 * times,
                                                    .keeps_bytes = 2 << 20,
                                                    .has_marks = true,
                                                    .keeps_every = 15,
                                                    .is_used = is_used});
    return found.size() == 1 ? found[0] : Finding{.title = std::to_string(found.size())};
  };
  const Finding few = told_of(8, true);
  EXPECT_EQ(few.kind, FindingKind::kGrowthInLoop);
  EXPECT_EQ(few.severity, Severity::kInfo);
  EXPECT_EQ(few.title, "train.py:7 keeps 2.00 MiB more once in 15 steps, 8 times: later steps use "
                       "it, so it may be needed");
  EXPECT_EQ(told_of(8, false).severity, Severity::kWarning);
  const Finding many = told_of(20, true);
  EXPECT_EQ(many.severity, Severity::kWarning);
  EXPECT_TRUE(many.fix.starts_with("if not all of it is needed, keep a sum of it")) << many.fix;
}

TEST(LeakFindings, ALookThatCameTooEarlySaysSoAndMayHaveSeenAllPartsOfABatch) {
  const auto told_of = [](uint64_t looked_after, uint64_t tensors) {
    const std::vector<Finding> found = findings_of(
        {.keeps_bytes = 40'960, .looked_after = looked_after, .held_tensors = tensors});
    return found.size() == 1 ? found[0] : Finding{.title = std::to_string(found.size())};
  };
  const Finding early = told_of(24, 600);
  EXPECT_EQ(*find_figure(early, "seen_blocks"), 24u);
  EXPECT_EQ(*find_figure(early, "live_blocks"), 100u);
  EXPECT_TRUE(early.fix.starts_with("copy each part of a batch with clone()")) << early.fix;
  EXPECT_FALSE(told_of(24, 24).fix.starts_with("copy")) << "one tensor a block";
  const Finding late = told_of(25, 600);
  EXPECT_EQ(find_figure(late, "seen_blocks"), nullptr);
  EXPECT_FALSE(late.fix.starts_with("copy")) << late.fix;
}

TEST(LeakFindings, AnEarlyLookOrAShortOneIsAReasonOnlyIfItLeftBlocksWithoutAName) {
  const auto holder = [](uint64_t looked_after, uint64_t held_blocks) {
    const std::vector<Finding> found = findings_of({.keeps_bytes = 4096,
                                                    .looked_after = looked_after,
                                                    .held_blocks = held_blocks,
                                                    .why_incomplete = "it was short"});
    if (found.size() != 1) return std::to_string(found.size());
    for (const auto& [name, text] : found[0].facts) {
      if (name == "holder") return text;
    }
    return std::string();
  };
  EXPECT_EQ(holder(90, UINT64_MAX), "kept in main (train.py)");
  EXPECT_EQ(holder(3, 1),
            "unknown, because the looks saw only 3 of 100 blocks; record with gpumemprof run "
            "--explain-leaks to name it");
  EXPECT_EQ(holder(90, 1),
            "unknown, because no single name holds most of it; names were found for 90 of 90 blocks");
}

}  // namespace
}  // namespace gpumemprof
