#include "report/describe/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/replay/snapshot_device.h"
#include "report/sample_for_tests.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

TEST(Explanation, WithoutCategoriesAndStepsItSaysWhatThereIs) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const PeakExplanation why =
      explain_peak(analysis, source.tables(), analysis.devices[0], "/opt/job");
  EXPECT_EQ(why.text,
            "1000 B in 3 blocks were live on cpu at the peak, 2.500 s after the first event; their types "
            "are unknown, because the recording has no modules, phases or tensor roles. "
            "train.py:41 step allocated most: 700 B (70.0 %). "
            "Next: gpumemprof advise looks for changes that lower it.");
  EXPECT_EQ(next_beside_advice(analysis, source.tables(), analysis.devices[0], "/opt/job"),
            "Next: look at train.py:41 step first: it held 700 B (70.0 %) at the peak, the most of "
            "all lines.");
}

TEST(Explanation, WhereAdviceWasLookedForInVainTheLineToLookAtIsNext) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const auto next = [&](const AdviceReport& advice) {
    return explain_peak(analysis, source.tables(), analysis.devices[0], "/opt/job", &advice).next;
  };
  EXPECT_EQ(next({.applies = true}),
            "Next: look at train.py:41 step first: it held 700 B (70.0 %) at the peak, the most of "
            "all lines.");
  const std::string advise = "Next: gpumemprof advise looks for changes that lower it.";
  EXPECT_EQ(next({.applies = true, .not_looked_because = "too many events"}), advise);
  EXPECT_EQ(next({.applies = true, .advice = {{.kind = "optimizer_state", .cost = "time"}}}), advise);
}

TEST(Explanation, WhatHasNoStackIsNoCodeAndTheLineOfTheRestFollows) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  DeviceAnalysis& device = analysis.devices[0];  // 1000 B at its peak
  device.holders_at_peak = {{0, 700, 2}, {4, 300, 1}};
  EXPECT_THAT(explain_peak(analysis, source.tables(), device, "/opt/job").text,
              testing::HasSubstr(". 700 B (70.0 %) have no stack. Of the rest, model.py:7 "
                                 "Model.__init__ allocated most: 300 B (30.0 %). Next: "));
  SnapshotDevice history{.live_before_bytes = 700, .has_times = true, .peak_event = 2};
  device.snapshot = std::make_shared<SnapshotDevice>(history);
  const PeakExplanation why = explain_peak(analysis, source.tables(), device, "/opt/job");
  EXPECT_THAT(why.text,
              testing::HasSubstr(". 700 B (70.0 %) were live before the recording began and have no "
                                 "stack. Of the rest, model.py:7 Model.__init__ allocated most: "
                                 "300 B (30.0 %). Next: "));
  EXPECT_THAT(why.figures, testing::Contains(std::pair<std::string, uint64_t>("no_stack_bytes", 700)));
}

TEST(Explanation, AllocatorSettingsAreNextOnlyBesideAdviceAndWhereASnapshotCanBeReplayed) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  const auto next_of = [&](uint64_t alloc_addresses, uint64_t matched) {
    auto snapshot = std::make_shared<SnapshotDevice>();
    snapshot->is_replayed = true;
    snapshot->replay.alloc_addresses = alloc_addresses, snapshot->replay.matched = matched;
    analysis.devices[0].snapshot = std::move(snapshot);
    const DeviceAnalysis& device = analysis.devices[0];
    return std::pair{explain_peak(analysis, source.tables(), device, "/opt/job").next,
                     next_beside_advice(analysis, source.tables(), device, "/opt/job")};
  };
  const std::string advice = "Next: gpumemprof advise looks for changes that lower it.";
  EXPECT_EQ(next_of(100, 99),
            std::pair(advice, std::string("Next: gpumemprof whatif --sweep tries other allocator "
                                          "settings.")));
  EXPECT_EQ(next_of(100, 98),
            std::pair(advice, std::string("Next: look at train.py:41 step first: it held 700 B "
                                          "(70.0 %) at the peak, the most of all lines.")));
  const std::string record =
      "Next: record the history with torch.cuda.memory._record_memory_history().";
  EXPECT_EQ(next_of(0, 0), std::pair(record, record));
}

/// A parameter of 3 KiB, in the second step an activation of 1 KiB that the step frees again.
MemorySource training_source(std::string_view module = "encoder.head", bool is_in_optimizer = false) {
  EventBatch events;
  append(&events, {.time_ns = 10'000'000, .address = 1, .size_bytes = 3072});
  append(&events, {.time_ns = 20'000'000, .address = 2, .size_bytes = 1024, .stack = 1});
  append(&events, {.time_ns = 40'000'000, .action = Action::kFreeCompleted, .address = 2});
  append(&events, {.time_ns = 50'000'000, .address = 3, .size_bytes = 512});
  events.marks = {{1, MarkKind::kStep, 0, 0, 15'000'000, 0, 0},
                  {1, MarkKind::kRole, 0, 2, 16'000'000, 1, 1},
                  {2, MarkKind::kSaved, 0, 0, 20'000'000, 2, kSavedIsOutput},
                  {3, MarkKind::kStep, 0, 0, 45'000'000, 0, 1}};
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  tables.strings.intern("unused");                         // 1
  tables.strings.intern(std::string(module) + ".weight");  // 2
  const auto label = [&](std::string_view file, std::string_view name) {
    return tables.stacks.intern_frame(
        {tables.strings.intern(file), tables.strings.intern(name), 0});
  };
  const uint32_t outer = is_in_optimizer ? label("/python/site-packages/torch/optim/optimizer.py",
                                                 "Optimizer.profile_hook_step.<locals>.wrapper")
                                         : label(kModuleFile, module);
  tables.stacks.push(0, outer);  // 1
  return source;
}

TEST(Explanation, NamesStepCategoriesModulesAndWhatStaysBetweenSteps) {
  MemorySource source = training_source();
  const Analysis analysis = *analyze_source(source, {});
  const PeakExplanation why = explain_peak(analysis, source.tables(), analysis.devices[0], "");
  EXPECT_THAT(why.text, testing::HasSubstr(
                            " after the first event, in step 1, in the forward pass: 75.0 % parameters "
                            "and 25.0 % activations. "));
  EXPECT_THAT(why.text, testing::EndsWith(
                            "; the largest module is encoder.head: 4.00 KiB (100.0 %). Next: a "
                            "smaller batch or checkpointing. 1.00 KiB (25.0 %) of the peak were "
                            "freed before step 1 ended. At the ends of steps 0 to 1, 3.00 KiB were "
                            "live (the median)."));
  EXPECT_EQ(next_beside_advice(analysis, source.tables(), analysis.devices[0], ""), why.next);
}

TEST(Explanation, SaysOfTypesThatRulesTellThatTheyAreInferred) {
  MemorySource source = training_source();
  Analysis analysis = *analyze_source(source, {});
  analysis.devices[0].categories.is_by_rules = true;
  EXPECT_THAT(explain_peak(analysis, source.tables(), analysis.devices[0], "").text,
              testing::HasSubstr(": 75.0 % parameters and 25.0 % activations, inferred from stacks "
                                 "and lifetimes. "));
}

TEST(Explanation, WhereALineHoldsDataThatOutlivesTheStepThatIsNext) {
  EventBatch events;  // a cache of 3,072 bytes beside an activation of 1,024
  append(&events, {.time_ns = 10'000'000, .address = 1, .size_bytes = 3072, .stack = 2});
  append(&events, {.time_ns = 20'000'000, .address = 2, .size_bytes = 1024, .stack = 1});
  append(&events, {.time_ns = 40'000'000, .action = Action::kFreeCompleted, .address = 2});
  events.marks = {{1, MarkKind::kStep, 0, 0, 15'000'000, 0, 0},
                  {2, MarkKind::kSaved, 0, 0, 20'000'000, 2, kSavedIsOutput},
                  {3, MarkKind::kStep, 0, 0, 45'000'000, 0, 1}};
  MemorySource source = training_source();
  MemorySource other(events);
  Tables& tables = other.mutable_tables() = source.mutable_tables();
  tables.stacks.push(0, tables.stacks.intern_frame(
                            {tables.strings.intern("/opt/job/data.py"), tables.strings.intern("load"), 7}));
  const Analysis analysis = *analyze_source(other, {});
  const PeakExplanation why = explain_peak(analysis, other.tables(), analysis.devices[0], "/opt/job");
  EXPECT_THAT(why.text, testing::EndsWith(" Next: hold less of what data.py:7 load makes; it held "
                                          "3.00 KiB (75.0 %) at the peak and 3.00 KiB after the "
                                          "last allocation. At the ends of steps 0 to 1, 3.00 KiB "
                                          "were live (the median)."));
}

TEST(Explanation, ASmallerBatchIsNoAdviceWhereAStepFreesOtherMemory) {
  EventBatch events;
  append(&events, {.time_ns = 10'000'000, .address = 1, .size_bytes = 3072});
  append(&events, {.time_ns = 20'000'000, .address = 2, .size_bytes = 2048});
  append(&events, {.time_ns = 30'000'000, .address = 3, .size_bytes = 512, .stack = 1});
  append(&events, {.time_ns = 40'000'000, .action = Action::kFreeCompleted, .address = 2});
  events.marks = {{1, MarkKind::kStep, 0, 0, 15'000'000, 0, 0},
                  {1, MarkKind::kRole, 0, 2, 16'000'000, 1, 1},
                  {2, MarkKind::kRole, 0, 2, 21'000'000, 2, static_cast<uint64_t>(StorageRole::kGradient)},
                  {4, MarkKind::kStep, 0, 0, 45'000'000, 0, 1}};
  MemorySource source = training_source();
  MemorySource other(events);
  other.mutable_tables() = source.mutable_tables();
  const Analysis analysis = *analyze_source(other, {});
  const PeakExplanation why = explain_peak(analysis, other.tables(), analysis.devices[0], "");
  EXPECT_THAT(why.text,
              testing::EndsWith(" Next: gpumemprof advise looks for changes that lower it."));
}

TEST(Explanation, ASequentialsLayerIsCalledAModule) {
  MemorySource source = training_source("2.0");
  const Analysis analysis = *analyze_source(source, {});
  EXPECT_THAT(explain_peak(analysis, source.tables(), analysis.devices[0], "").text,
              testing::HasSubstr("; the largest is module 2.0: 4.00 KiB (100.0 %). "));
}

TEST(Explanation, ASmallerBatchIsNoAdviceForTheOptimizersStep) {
  MemorySource source = training_source("encoder.head", true);
  const Analysis analysis = *analyze_source(source, {});
  const std::string text = explain_peak(analysis, source.tables(), analysis.devices[0], "").text;
  EXPECT_THAT(text, testing::HasSubstr(", in the optimizer's step: "));
  EXPECT_THAT(text, testing::EndsWith(" Next: gpumemprof advise looks for changes that lower it."));
}

TEST(Explanation, OfALeakThatMattersItsFixIsNext) {
  MemorySource source = training_source();
  Analysis analysis = *analyze_source(source, {});
  const auto next = [&] {
    const std::string text = explain_peak(analysis, source.tables(), analysis.devices[0], "").text;
    return text.substr(text.find("Next: "));
  };
  analysis.findings = {{.kind = FindingKind::kLeak, .severity = Severity::kInfo, .fix = "keep numbers"}};
  EXPECT_THAT(next(), testing::StartsWith("Next: a smaller batch"));
  analysis.findings[0].severity = Severity::kWarning;
  EXPECT_EQ(next(), "Next: stop the leak: keep numbers.");
  analysis.findings[0].stacks = {UINT32_MAX};  // of which nothing is live at the peak
  EXPECT_THAT(next(), testing::StartsWith("Next: a smaller batch"));
  EXPECT_THAT(next(), testing::EndsWith(". Then stop the leak (none of it in this peak): keep numbers."));
  analysis.findings[0].severity = Severity::kCritical;  // a run like this one reaches the limit
  EXPECT_EQ(next(), "Next: stop the leak (none of it in this peak): keep numbers.");
  analysis.findings[0].kind = FindingKind::kOutOfMemory;
  EXPECT_EQ(next(), "Next: keep numbers.");
}

TEST(Explanation, WhereNoSettingHelpsTheBatchIsNext) {
  EventBatch events;  // refused with 3,072 bytes of activations and 1,024 of unknown type
  append(&events, {.time_ns = 10'000'000, .address = 1, .size_bytes = 1024});
  append(&events, {.time_ns = 20'000'000, .address = 2, .size_bytes = 3072, .stack = 1});
  append(&events, {.time_ns = 40'000'000, .action = Action::kFreeCompleted, .address = 2});
  events.marks = {{2, MarkKind::kSaved, 0, 0, 20'000'000, 2, kSavedIsOutput}};
  MemorySource source = training_source();
  MemorySource other(events);
  other.mutable_tables() = source.mutable_tables();
  Analysis analysis = *analyze_source(other, {});
  analysis.findings = {{.kind = FindingKind::kOutOfMemory,
                        .severity = Severity::kCritical,
                        .bytes = 1024}};
  const auto next = [&] {
    const std::string text = explain_peak(analysis, other.tables(), analysis.devices[0], "").text;
    return text.substr(text.find("Next: "));
  };
  EXPECT_EQ(next(),
            "Next: a smaller batch or checkpointing; 3.00 KiB (75.0 %) are activations, inputs and "
            "temporaries.");
  analysis.findings[0].fix = "set expandable_segments:True";
  EXPECT_EQ(next(), "Next: set expandable_segments:True.");
}

TEST(Explanation, TheLineThatHeldHalfOfThePeakIsNextWhereARequestWasRefused) {
  EventBatch events;
  for (uint64_t i = 1; i <= 3; ++i)
    append(&events, {.time_ns = i * 10'000'000, .address = i, .size_bytes = 2048, .stack = 2});
  MemorySource source = training_source();
  MemorySource other(events);
  Tables& tables = other.mutable_tables();
  tables = source.mutable_tables();
  const uint32_t file = tables.strings.intern("/opt/job/data.py"), name = tables.strings.intern("load");
  const uint32_t line = tables.stacks.push(0, tables.stacks.intern_frame({file, name, 7}));
  for (uint32_t& stack : events.stack) stack = line;
  MemorySource last(events);
  last.mutable_tables() = tables;
  Analysis analysis = *analyze_source(last, {});
  const auto next_of = [&](uint64_t requested) {
    analysis.ends.refused = {{.device = "cpu", .requested = PrintedSize{.bytes = requested, .least_bytes = requested}}};
    return explain_peak(analysis, last.tables(), analysis.devices[0], "/opt/job").next;
  };
  EXPECT_EQ(next_of(1024), "Next: hold less of what data.py:7 load makes; it held 6.00 KiB (100.0 %) at the peak.");
  EXPECT_EQ(next_of(65536), "Next: lower the request that was refused (64.0 KiB), or what was live beside it.");
  EXPECT_EQ(next_of((uint64_t{1} << 40) - 1),
            "Next: lower the request that was refused (1.00 TiB), or what was live beside it.");
  EXPECT_EQ(next_of(uint64_t{1} << 40),
            "Next: check the shapes and sizes of the request that was refused; 1.00 TiB is more than "
            "an ordinary machine has.");
}

TEST(Explanation, AdviceThatSavesHalfIsNextWhereNoMoreThanWasLiveWasRefused) {
  MemorySource source = sample_source();  // 1000 B at its peak
  Analysis analysis = analyze_all(source);
  AdviceReport advice{.advice = {{.kind = "results_kept",
                                  .fix = "Keep what is read later",
                                  .bytes = 500,
                                  .basis = SavingBasis::kSimulated}}};
  const auto next_of = [&](uint64_t requested) {
    analysis.ends.refused = {{.device = "cpu", .requested = PrintedSize{.bytes = requested, .least_bytes = requested}}};
    return explain_peak(analysis, source.tables(), analysis.devices[0], "/opt/job", &advice).next;
  };
  const std::string kept = "Next: keep what is read later. That saves 500 B (50.0 %) of the peak, simulated.";
  EXPECT_EQ(next_of(1000), kept);
  EXPECT_EQ(next_of(1001), "Next: lower the request that was refused (1001 B), or what was live beside it.");
  advice.advice[0].bytes = 499;
  EXPECT_EQ(next_of(700), "Next: hold less of what train.py:41 step makes; it held 700 B (70.0 %) at the peak.");
}

/// Of the sample, 1000 B at its peak, with one refusal on its device.
std::string next_after_refusal(const OomExplanation& oom) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  auto snapshot = std::make_shared<SnapshotDevice>();
  snapshot->is_consistent = true;
  snapshot->ooms = {oom};
  analysis.devices[0].snapshot = std::move(snapshot);
  analysis.findings = {{.kind = FindingKind::kOutOfMemory,
                        .severity = Severity::kCritical,
                        .bytes = oom.asked_bytes}};
  return explain_peak(analysis, source.tables(), analysis.devices[0], "/opt/job").next;
}

TEST(Explanation, OfFragmentationWhoPinsTheFreePiecesIsNext) {
  OomExplanation oom{.asked_bytes = 900, .cause = RefusalCause::kFragmentation};
  const SegmentPicture segment{
      .pinned_bytes = 400, .blocks = {{10, 4, SimulatedBlock::State::kAllocated}, {400}}};
  oom.moment.segments = {segment, segment};
  oom.moment.figures.reserved_bytes = 820;
  oom.room.bytes = 900;  // 80 left, 820 once the blocks are gone
  EXPECT_EQ(next_after_refusal(oom),
            "Next: free or move what model.py:7 Model.__init__ keeps; its 20 B pinned 800 B in 2 "
            "segments when the request was refused.");
  oom.asked_bytes = 901;
  EXPECT_EQ(next_after_refusal(oom),
            "Next: lower the request that was refused (901 B), or what was live beside it.")
      << "without them it would not fit";
}

TEST(Explanation, OfAPieceInAPrivatePoolThePoolIsNext) {
  OomExplanation oom{.asked_bytes = 500, .cause = RefusalCause::kOtherCache};
  oom.other_cache = {.place = "private pool (0,1)", .piece_bytes = 850, .is_private = true};
  EXPECT_EQ(next_after_refusal(oom),
            "Next: keep less in the private pool (a CUDA graph or a MemPool), or release it when "
            "it is no longer needed; 850 B were free in one piece in private pool (0,1).");
}

TEST(Explanation, WhatIsNextAfterARefusalIsOfItsMomentAndNotOfThePeak) {
  OomExplanation oom{.asked_bytes = 60};
  oom.moment.figures.requested_bytes = oom.moment.figures.active_bytes = 100;
  oom.moment.holders = {{4, 80, 1}};
  EXPECT_EQ(next_after_refusal(oom),
            "Next: hold less of what model.py:7 Model.__init__ makes; it held 80 B (80.0 %) when "
            "60 B were refused.");
  oom.asked_bytes = 500;
  EXPECT_EQ(next_after_refusal(oom),
            "Next: lower the request that was refused (500 B), or what was live beside it.");
}

TEST(Explanation, TheLargestAdviceWithoutAPriceIsNext) {
  MemorySource source = sample_source();  // 1000 B at its peak
  Analysis analysis = analyze_all(source);
  AdviceReport report;
  const auto why = [&] {
    return explain_peak(analysis, source.tables(), analysis.devices[0], "", &report);
  };
  report.advice = {{.kind = "allocator", .fix = "Set it", .bytes = 900, .is_of_reserved = true},
                   {.kind = "checkpointing", .fix = "Checkpoint it", .bytes = 800},
                   {.kind = "fused_attention", .fix = "Fuse it", .bytes = 700, .cost = "time"}};
  EXPECT_EQ(why().next, "Next: gpumemprof advise looks for changes that lower it.");
  EXPECT_TRUE(why().asks_for_advice);
  report.advice.push_back({.kind = "graph_not_needed",
                           .fix = "Run it under torch.no_grad()",
                           .bytes = 400,
                           .basis = SavingBasis::kSimulated});
  EXPECT_EQ(why().next,
            "Next: run it under torch.no_grad(). That saves 400 B (40.0 %) of the peak, "
            "simulated.");
  report.advice.back().basis = SavingBasis::kAtStake;
  EXPECT_EQ(why().next,
            "Next: run it under torch.no_grad(). That saves at most 400 B (40.0 %) of the peak.");
  report.advice.push_back({.kind = "late_backward",
                           .fix = "Call backward() earlier",
                           .bytes = 500,
                           .cost = "only for parts of a batch"});
  EXPECT_EQ(why().next,
            "Next: call backward() earlier; only for parts of a batch. That saves at most 500 B "
            "(50.0 %) of the peak.");
  report.advice.pop_back();
  // Growth of a known line is surer than advice; of no known line it is not.
  analysis.findings = {{.kind = FindingKind::kSteadyGrowth,
                        .severity = Severity::kWarning,
                        .stack = 1,
                        .fix = "Look at it"}};
  EXPECT_EQ(why().next, "Next: Look at it.");
  analysis.findings[0].stack = 0;
  EXPECT_TRUE(why().next.starts_with("Next: run it under torch.no_grad().")) << why().next;
}

TEST(Explanation, NothingOfTheRecordingReachesTheTerminal) {
  MemorySource source = training_source("net\x1b[2J");
  const Analysis analysis = *analyze_source(source, {});
  const std::string text = explain_peak(analysis, source.tables(), analysis.devices[0], "").text;
  EXPECT_THAT(text, testing::HasSubstr("net\xef\xbf\xbd"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("\x1b")));
}

/// 5,000 B that model.py:7 maps beside 1,000 B of tensors.
TEST(Explanation, AMappedFileIsToldBesideThePeak) {
  MemorySource source = sample_source();
  Analysis analysis = analyze_all(source);
  const auto text = [&] {
    return explain_peak(analysis, source.tables(), analysis.devices[0], "/opt/job").text;
  };
  Tables& tables = source.mutable_tables();
  const auto index = static_cast<uint16_t>(tables.devices.size());
  tables.devices.push_back({.layer = Layer::kHost});
  DeviceAnalysis& shared = analysis.devices.emplace_back();
  shared.device = index, shared.figures.peak_bytes = 5000, shared.holders_at_peak = {{4, 5000, 1}};
  EXPECT_THAT(text(), testing::HasSubstr("4.88 KiB more are files that model.py:7 Model.__init__ "
                                         "maps; only the pages that are touched take memory. Next"));
  EXPECT_EQ(main_device(analysis, tables), &analysis.devices[0]);
  const Frame received{tables.strings.intern("/v/torch/multiprocessing/reductions.py"),
                       tables.strings.intern("rebuild_storage_fd"), 543};
  shared.holders_at_peak[0].stack = tables.stacks.push(4, tables.stacks.intern_frame(received));
  EXPECT_THAT(text(), testing::Not(testing::HasSubstr("maps")));
  EXPECT_EQ(main_device(analysis, tables), &shared) << "all of it is resident";
}

}  // namespace
}  // namespace gpumemprof
