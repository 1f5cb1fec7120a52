#include "analysis/pass/program_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/analysis.h"
#include "analysis/pass/end_in_doubt.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/replay/told_refusals.h"
#include "input/input.h"
#include "recording/samples_writer.h"
#include "recording/writer_state.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

class ProgramEndTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "program_endXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void file(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_ + '/' + name).parent_path());
    std::ofstream(folder_ + '/' + name) << text;
  }
  void meta(const std::string& end) {
    file("meta.json", R"({"command": ["python", "a.py"], "pid": 7)" + end + "}");
  }
  std::string failure() { return read_program_ends({folder_}).failure; }

  std::string folder_;
};

TEST_F(ProgramEndTest, TheExitSaysWhetherItDied) {
  meta(R"(, "exit": {"code": 0})");
  EXPECT_EQ(failure(), "");
  meta(R"(, "exit": {"code": 3})");
  EXPECT_EQ(failure(), "the program ended with exit code 3");
  meta(R"(, "exit": {"signal": 9, "signal_name": "SIGKILL"})");
  EXPECT_EQ(failure(), "SIGKILL ended the program");
  meta(R"(, "exit": {"signal": 2, "signal_name": "SIGINT"})");
  EXPECT_EQ(failure(), "");  // somebody pressed Ctrl-C
  meta("");
  EXPECT_EQ(failure(), "");  // it runs
  ASSERT_EQ(read_program_ends({folder_}).runs.size(), 1u);
  EXPECT_EQ(read_program_ends({folder_}).runs[0].command, "python a.py");
}

TEST_F(ProgramEndTest, WhoeverStillWritesToTheFilesIsRunning) {
  const auto state = [&] { return read_program_ends({folder_}).runs.at(0).state; };
  meta(R"(, "run_pid": 6, "exit": {"code": 0})");
  EXPECT_EQ(state(), RunState::kEnded);
  meta(R"(, "run_pid": 6)");
  EXPECT_EQ(state(), RunState::kElsewhere) << "no file tells of its machine";
  const auto own = static_cast<uint32_t>(getpid());
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const auto samples_of = [&](uint64_t start_ticks) {
    ASSERT_TRUE(SamplesWriter::create(
        folder_, {.host = "h", .boot_id = boot, .pid = own, .start_ticks = start_ticks}, 1 << 20));
    meta(R"(, "run_pid": )" + std::to_string(own));
  };
  samples_of(start_ticks_of(own) + 1);  // its number went to another process
  EXPECT_EQ(state(), RunState::kGone);
  EXPECT_STREQ(run_state_name(state()), "unknown");
  samples_of(start_ticks_of(own));
  EXPECT_EQ(state(), RunState::kRunning);
  EXPECT_TRUE(read_program_ends({folder_}).running_pids.empty()) << "`run` itself records nothing";
}

TEST_F(ProgramEndTest, ADumpTellsWhatWasAskedForWhereAndWhoHeldIt) {
  const std::string dump = "oom_dumps/oom_dump_20260101T000000Z_7_cpu_1/";
  file(dump + "metadata.json",
       R"({"backend": "cpu", "captured_event_count": 0, "stack": ["/j/a.py:9 grow"],
           "exception_message": "DefaultCPUAllocator: can't allocate memory: you tried to )"
       R"(allocate 4096 bytes. Error code 12"})");
  file(dump + "manifest.json", R"({"bundle_name": "oom_dump_20260101T000000Z_7_cpu_1"})");
  file(dump + "environment.json", R"({"pid": 7, "start_ticks": 90, "host": "node1"})");
  file(dump + "live_memory.json",
       R"({"devices": [{"device": "cpu", "live_bytes": 3000, "holders":
           [{"bytes": 3000, "count": 2, "stack": ["/j/a.py:4 main"]}]}]})");
  const ProgramEnds ends = read_program_ends({folder_});
  ASSERT_EQ(ends.refused.size(), 1u);
  const RefusedRequest& one = ends.refused[0];
  EXPECT_TRUE(one.process.is({.pid = 7, .start_ticks = 90, .host = "node1"}));
  EXPECT_FALSE(one.process.is({.pid = 7, .start_ticks = 90, .host = "node2"}));
  EXPECT_FALSE(one.process.is({.pid = 7, .start_ticks = 91, .host = "node1"}));
  EXPECT_EQ(one.requested->bytes, 4096u);
  EXPECT_EQ(one.live_bytes, 3000u);
  EXPECT_EQ(one.device, "cpu");
  EXPECT_THAT(one.stack, testing::ElementsAre("/j/a.py:9 grow"));
  ASSERT_EQ(one.holders.size(), 1u);
  EXPECT_EQ(one.holders[0].count, 2u);
  EXPECT_EQ(ends.failure, "the program ran out of memory");
  EXPECT_EQ(input_kind({one.folder}), InputKind::kOomDump);

  Analysis analysis;
  analysis.score.value = 9.3;
  add_program_ends(ends, {}, &analysis);
  EXPECT_FALSE(analysis.score.value);
}

TEST_F(ProgramEndTest, TheFrameworkThatRaisedTellsWhoseHostMemoryWasRefused) {
  const std::string dump = "oom_dumps/oom_dump_20260101T000000Z_7_cpu_1/";
  const auto device_for = [&](const std::string& module, const std::string& names) {
    file(dump + "metadata.json",
         R"({"backend": "cpu", "exception_message": "m", "exception_module": ")" + module + "\"}");
    std::string devices;
    uint64_t bytes = 100;
    std::istringstream list(names);
    for (std::string name; list >> name; bytes += 100) {
      devices += (devices.empty() ? "" : ",") + (R"({"device": ")" + name) +
                 R"(", "live_bytes": )" + std::to_string(bytes) +
                 R"(, "holders": [{"bytes": 7, "count": 1, "stack": ["/j/a.py:4 main"]}]})";
    }
    file(dump + "live_memory.json", R"({"devices": [)" + devices + "]}");
    auto one = read_oom_dump(folder_ + '/' + dump.substr(0, dump.size() - 1));
    EXPECT_TRUE(one && is_host_refusal(*one)) << names;
    return one->device + ' ' + std::to_string(one->live_bytes.value_or(0)) + ' ' +
           std::to_string(one->holders.size());
  };
  const std::string tensorflow = "tensorflow.python.framework.errors_impl";
  EXPECT_EQ(device_for(tensorflow, "tensorflow:cpu tensorflow:mklcpu jax:cpu cpu"),
            "tensorflow:mklcpu 200 1");
  EXPECT_EQ(device_for("jax.errors", "jax:cpu tensorflow:mklcpu cpu"), "jax:cpu 100 1");
  EXPECT_EQ(device_for("builtins", "cpu jax:cpu"), "cpu 100 1");
  EXPECT_EQ(device_for("builtins", "tensorflow:cpu jax:cpu"), "jax:cpu 200 1");
  EXPECT_EQ(device_for(tensorflow, "cpu cuda:0"), "cpu 100 1");
  EXPECT_EQ(device_for(tensorflow, "tensorflow:GPU_0_bfc"), "cpu 0 0");
}

TEST(UncaughtErrors, AreOfTheRankOfTheirOwnHostWhereTwoHaveOnePid) {
  Tables tables;
  tables.processes = {{.pid = 10, .host = "node1", .rank = 0}, {.pid = 10, .host = "node2", .rank = 1}};
  const auto rank_of = [&](const std::string& host) {
    ProgramEnds ends;
    ends.uncaught = {{.process = {.pid = 10, .host = host}}};
    Analysis analysis;
    add_program_ends(ends, tables, &analysis);
    return analysis.ends.uncaught[0].rank;
  };
  EXPECT_EQ(rank_of("node1"), 0u);
  EXPECT_EQ(rank_of("node2"), 1u);
  EXPECT_EQ(rank_of(""), 0u) << "an older file does not tell";
}

TEST(ProgramEnds, AProgramThatFailsAfterARefusalThatItCaughtRanOutOfMemory) {
  Tables tables;
  tables.processes = {{.pid = 9, .host = "n"}};
  tables.devices = {{.process = 0}};
  const auto ends_with = [&](int exit_code, uint64_t last_alloc_event, size_t processes = 1,
                             std::vector<ProcessExit> exits = {}) {
    Tables all = tables;
    all.processes.resize(processes, {.pid = 10, .host = "n"});
    ProgramEnds ends;
    ends.runs = {{.host = "n", .pid = 8, .exit_code = exit_code, .exits = std::move(exits)}};
    find_failure(&ends);
    Analysis analysis;
    analysis.devices.resize(1);
    analysis.devices[0].refusals = {{.size_bytes = 4096, .event = 50, .number = 3, .live_bytes = 70}};
    analysis.devices[0].last_alloc_event = last_alloc_event;
    analysis.devices[0].refusals[0].allocated_after_bytes = last_alloc_event > 50 ? 4 : 0;
    add_program_ends(ends, all, &analysis);
    return analysis.ends;
  };
  const ProgramEnds ends = ends_with(1, 49);
  ASSERT_EQ(ends.refused.size(), 1u);
  const RefusedRequest& refused = ends.refused[0];
  EXPECT_TRUE(refused.was_caught);
  EXPECT_EQ(refused.process.pid, 9u);
  EXPECT_EQ(std::tuple(refused.told->number, refused.told->size_bytes, refused.told->live_bytes),
            std::tuple(3u, 4096u, 70u));
  EXPECT_EQ(ends.failure, "the program ran out of memory");
  EXPECT_TRUE(ends_with(0, 49).refused.empty()) << "it did not fail";
  EXPECT_TRUE(ends_with(1, 51).refused.empty()) << "it went on";
  EXPECT_TRUE(ends_with(1, 49, 2).refused.empty()) << "who failed is not known";
  EXPECT_EQ(ends_with(1, 49, 2, {{.pid = 9, .exit_code = 3}}).refused.size(), 1u);
  EXPECT_TRUE(ends_with(1, 49, 2, {{.pid = 9, .exit_code = 0}, {.pid = 10, .exit_code = 3}}).refused.empty());
}

/// train() is refused memory at line 5, calls itself at line 7, and gives up.
TEST(ProgramEnds, ARefusalForWantOfWhatAnEarlierAttemptHoldsSaysSo) {
  Tables tables;
  tables.processes = {{.pid = 9, .host = "n"}};
  tables.devices = {{.process = 0}};
  const auto line = [&](uint32_t parent, uint32_t number) {
    const Frame frame{tables.strings.intern("/me/t.py"), tables.strings.intern("train"), number};
    return tables.stacks.push(parent, tables.stacks.intern_frame(frame));
  };
  const uint32_t first = line(0, 5), last = line(line(0, 7), 5);
  ProgramEnds ends;
  ends.runs = {{.host = "n", .pid = 9, .exit_code = 1, .address_space_limit_bytes = 8192}};
  find_failure(&ends);
  Analysis analysis;
  analysis.devices.resize(1);
  DeviceAnalysis& device = analysis.devices[0];
  device.refusals = {{.size_bytes = 4096,
                      .event = 5,
                      .stack = first,
                      .number = 0,
                      .live_bytes = 6144,
                      .holders = {{first, 5120, 1}}},
                     {.size_bytes = 2048,
                      .event = 7,
                      .stack = last,
                      .number = 1,
                      .live_bytes = 6244,
                      .allocated_after_bytes = 300,
                      .holders = {{first, 5120, 1}, {last, 100, 1}}}};
  device.last_alloc_event = 9;
  add_program_ends(ends, tables, &analysis);
  ASSERT_EQ(analysis.ends.refused.size(), 1u);
  EXPECT_EQ(analysis.ends.refused[0].told->number, 1u);
  EXPECT_EQ(analysis.ends.refused[0].address_space_limit_bytes, 8192u);
  EXPECT_EQ(analysis.ends.failure, "the program ran out of memory");
  ASSERT_EQ(analysis.findings.size(), 1u);
  const Finding& finding = analysis.findings[0];
  EXPECT_EQ(finding.name, "attempt_held_by_exception");
  EXPECT_EQ(finding.title,
            "2.00 KiB were refused, with 6.10 KiB live, of which an attempt that was over held "
            "5.00 KiB");
  EXPECT_THAT(finding.evidence, testing::Contains(testing::Pair("held_by_attempt_bytes", 5120)));
  EXPECT_EQ(finding.fix,
            "leave the except block before you try again at t.py:7, and keep no exception: it holds "
            "the frames of the attempt at t.py:5, and their 5.00 KiB");
}

TEST(ProgramEnds, ARefusalThatEndedAProgramIsAFindingWhereNoReplayHasOne) {
  Tables tables;
  tables.processes = {{.pid = 9, .host = "n"}};
  tables.devices = {{.process = 0}};
  const auto findings = [&](std::shared_ptr<const SnapshotDevice> snapshot) {
    ProgramEnds ends;
    ends.runs = {{.host = "n", .pid = 8, .exit_code = 1}};
    find_failure(&ends);
    Analysis analysis;
    analysis.devices.resize(1);
    analysis.devices[0].snapshot = std::move(snapshot);
    analysis.devices[0].refusals = {
        {.size_bytes = 4096, .event = 50, .stack = 2, .number = 3, .live_bytes = 1024}};
    add_program_ends(ends, tables, &analysis);
    return analysis.findings;
  };
  const std::vector<Finding> of_host = findings(nullptr);
  ASSERT_EQ(of_host.size(), 1u);
  EXPECT_EQ(of_host[0].kind, FindingKind::kOutOfMemory);
  EXPECT_EQ(of_host[0].severity, Severity::kCritical);
  EXPECT_EQ(of_host[0].title, "4.00 KiB were refused, with 1.00 KiB live");
  EXPECT_EQ(of_host[0].bytes, 4096u);
  EXPECT_EQ(of_host[0].stack, 2u);
  EXPECT_THAT(of_host[0].evidence,
              testing::ElementsAre(testing::Pair("event_index", 50), testing::Pair("asked_bytes", 4096),
                                   testing::Pair("live_bytes", 1024)));
  EXPECT_THAT(findings(std::make_shared<SnapshotDevice>()), testing::IsEmpty());
}

TEST(ProgramEnds, OfAJobAreToldByTheRankThatFailedFirst) {
  Tables tables;
  tables.processes = {{.pid = 9, .host = "n"}, {.pid = 10, .host = "n", .rank = 0},
                      {.pid = 11, .host = "n", .rank = 1}};
  const auto failure = [&](ProgramEnds ends) {
    ends.runs[0].pid = 9, ends.runs[0].host = "n", ends.runs[0].exit_code = 1;
    find_failure(&ends);
    Analysis analysis;
    add_program_ends(ends, tables, &analysis);
    EXPECT_EQ(analysis.score.reason, analysis.ends.failure);
    return analysis.ends.failure;
  };
  const UncaughtError of_launcher = {
      .process = {.pid = 9, .host = "n"}, .time_ns = 5, .kind = "ChildFailedError"};
  const UncaughtError of_rank = {
      .process = {.pid = 10, .host = "n"}, .time_ns = 4, .kind = "RuntimeError"};
  const ProcessExit by_signal = {.pid = 11, .signal = "SIGKILL"}, after = {.pid = 10, .signal = "SIGTERM"},
                    by_code = {.pid = 11, .exit_code = 3};
  EXPECT_EQ(failure({.runs = {{}}, .uncaught = {of_launcher}}), "ChildFailedError ended the program");
  EXPECT_EQ(failure({.runs = {{.exits = {after, by_signal}}}, .uncaught = {of_launcher, of_rank}}),
            "SIGKILL ended rank 1");
  EXPECT_EQ(failure({.runs = {{.exits = {by_code}}}, .uncaught = {of_launcher, of_rank}}),
            "RuntimeError ended rank 0");
  EXPECT_EQ(failure({.runs = {{.exits = {by_code}}}, .uncaught = {of_launcher}}),
            "rank 1 ended with exit code 3");
}

TEST(UnfinishedProcesses, OfAProgramThatFailedAreToldInTheOrderOfTheirLastEvents) {
  Tables tables;
  tables.processes = {{.pid = 10}, {.pid = 11, .rank = 0}, {.pid = 12, .rank = 1}, {.pid = 13}};
  tables.processes[3].exited_cleanly = true;
  for (uint32_t process : {1, 2, 3}) tables.devices.push_back({.process = process});
  Analysis analysis;
  analysis.start_time_ns = 100;
  for (uint16_t device : {0, 1, 2}) {
    analysis.devices.emplace_back().device = device;
    analysis.devices.back().last_time_ns = 900 - 200 * device;
  }
  analysis.devices.emplace_back().device = 60'000;  // that a damaged file made up
  const auto pids = [&](int exit_code) {
    ProgramEnds ends;
    ends.runs = {{.pid = 10, .exit_code = exit_code}};
    add_program_ends(ends, tables, &analysis);
    std::vector<uint32_t> out;
    for (const UnfinishedProcess& one : analysis.ends.unfinished) out.push_back(one.pid);
    return out;
  };
  EXPECT_THAT(pids(1), testing::ElementsAre(12, 11));
  EXPECT_EQ(analysis.ends.unfinished[0].last_event_ns, 600u);
  EXPECT_THAT(pids(0), testing::IsEmpty());
}

TEST_F(ProgramEndTest, FilesOfAnyContentAreBorne) {
  const std::string dump = "oom_dumps/oom_dump_x/";
  for (const char* text :
       {"", "{", "[]", "null", R"({"devices": 3, "exit": [], "command": {}})",
        R"({"backend": 1, "stack": [1, {}], "pid": -4, "exit": {"code": -1}})"}) {
    file("meta.json", text);
    for (const char* name :
         {"metadata.json", "manifest.json", "environment.json", "live_memory.json"})
      file(dump + name, text);
    (void)read_program_ends({folder_, folder_ + "/meta.json", "/no/such"});
    EXPECT_NE(input_kind({folder_ + "/oom_dumps/oom_dump_x"}), InputKind::kOomDump);
  }
}

TEST(EndInDoubt, AProgramWhoseEndNobodySawHasNoScoreWhereItsLastEventsMayBeMissing) {
  const auto reason = [](uint64_t lost_events, bool exited_cleanly) {
    Tables tables;
    tables.processes = {{.pid = 10, .exited_cleanly = exited_cleanly}};
    Analysis analysis;
    analysis.score.value = 10;
    analysis.loss.add(lost_events, 0, "the last events may be missing");
    EXPECT_STREQ(why_not_exact(analysis, {}), lost_events == LossReason::kUncounted
                                                  ? "events may have been lost"
                                                  : "events were lost");
    add_program_ends({}, tables, &analysis);
    return analysis.score.value ? "scored" : analysis.score.reason;
  };
  EXPECT_EQ(reason(LossReason::kUncounted, false),
            "how the program ended is unknown, and its last events may be missing");
  EXPECT_EQ(reason(LossReason::kUncounted, true), "scored");
  EXPECT_EQ(reason(5, false), "scored");
}

TEST(EndInDoubt, WhatWasNotSeenToExitIsInDoubtUnlessItsParentOrItsRunEndedWell) {
  Tables tables;
  tables.processes = {{.pid = 10, .host = "h"}, {.pid = 11, .parent_pid = 10, .host = "h"}};
  const Process& worker = tables.processes[1];
  EXPECT_TRUE(is_end_in_doubt(tables, worker, {}));
  tables.processes[0].exited_cleanly = true;
  EXPECT_FALSE(is_end_in_doubt(tables, worker, {}));
  tables.processes[0].host = "another";
  EXPECT_TRUE(is_end_in_doubt(tables, worker, {}));
  ProgramEnds ends;
  ends.runs = {{.exit_code = 0, .kernel_kills = 0}};
  EXPECT_FALSE(is_end_in_doubt(tables, worker, ends));
  ends.runs.push_back({.exit_code = 0, .kernel_kills = 1});
  EXPECT_TRUE(is_end_in_doubt(tables, worker, ends));
  ends.runs[1] = {.signal = "SIGKILL"};
  EXPECT_TRUE(is_end_in_doubt(tables, worker, ends));
  tables.processes[1].exited_cleanly = true;
  EXPECT_FALSE(is_end_in_doubt(tables, worker, ends));
}

}  // namespace
}  // namespace gpumemprof
