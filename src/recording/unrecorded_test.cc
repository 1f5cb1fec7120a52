#include "recording/unrecorded.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include "recording/losses.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

// By name: other tests of the same compilation see no more of them.
using format::kAtCreation, format::kAtFirstPage, format::kFolderWasThere, format::kNoInodesThen,
    format::kNoted, format::Unrecorded, format::UnrecordedAt;

constexpr uint32_t kNobody = 4194304;  // PIDs are below it

class UnrecordedTest : public ::testing::Test {
 protected:
  UnrecordedTest() : arena_(*Arena::make()), processes_(arena_, folder_.path()) {}

  Unrecorded* count(size_t entry, uint32_t pid, int error, uint64_t events, uint64_t bytes) {
    Unrecorded* one = &arena_->header()->unrecorded[entry];
    *one = {.state = Unrecorded::kFilled,
            .pid = pid,
            .at = kAtCreation,
            .error = error,
            .user = geteuid(),
            .file_limit_bytes = 4096,
            .events = events,
            .bytes = bytes,
            .processes = 1};
    memcpy(one->command, "python x.py", 11);
    return one;
  }

  for_tests::TempFolder folder_;
  std::shared_ptr<Arena> arena_;
  UnrecordedProcesses processes_;
};

TEST_F(UnrecordedTest, ProcessesThatAreGoneAreToldTogetherAndTheirEntriesAreFree) {
  for (size_t i = 0; i < 5; ++i) count(i, kNobody + static_cast<uint32_t>(i), EACCES, 6, 1000);
  EXPECT_EQ(processes_.round(), 0u);
  size_t used = 0;
  for (const Unrecorded& one : arena_->header()->unrecorded) used += one.state != 0;
  EXPECT_EQ(used, 1u);
  UnrecordedProcesses after_a_kill(arena_, folder_.path());
  const auto told = after_a_kill.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].processes, 5u);
  EXPECT_EQ(told[0].lost_events, 30u);
  EXPECT_EQ(told[0].lost_bytes, 5000u);
  EXPECT_EQ(told[0].command, "python x.py");
  EXPECT_EQ(told[0].reason, "its file could not be made: Permission denied");
}

TEST_F(UnrecordedTest, WhatALivingProcessLosesIsToldOnce) {
  Unrecorded* one = count(3, static_cast<uint32_t>(getpid()), ENOSPC, 10, 100);
  EXPECT_EQ(processes_.round(), 1u);
  EXPECT_EQ(processes_.take()[0].lost_events, 10u);
  EXPECT_TRUE(processes_.take().empty());
  one->events += 4;
  EXPECT_EQ(processes_.take()[0].lost_events, 4u);
  EXPECT_TRUE(processes_.pids().contains(getpid()));
}

TEST_F(UnrecordedTest, OneThatIsBeingFilledIsNotLookedAt) {
  count(0, kNobody, EACCES, 6, 1000)->state = Unrecorded::kTaken;
  EXPECT_EQ(processes_.round(), 0u);
  EXPECT_TRUE(processes_.take().empty());
}

TEST_F(UnrecordedTest, TheCrowdIsCounted) {
  arena_->header()->crowd.events = 7, arena_->header()->crowd.processes = 2;
  const auto told = processes_.take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].processes, 2u);
  EXPECT_EQ(told[0].lost_events, 7u);
}

TEST_F(UnrecordedTest, TheReasonIsTheErrorAndWhatLiesBehindIt) {
  auto reason = [](int error, uint32_t user, uint32_t notes, UnrecordedAt at = kAtCreation) {
    return why_it_has_no_file(
        {.at = at, .error = error, .user = user, .notes = notes, .file_limit_bytes = 1024});
  };
  const uint32_t us = geteuid();
  EXPECT_EQ(reason(EACCES, us + 1, kNoted | kFolderWasThere),
            "its file could not be made: Permission denied (it runs as user " +
                std::to_string(us + 1) + ")");
  EXPECT_EQ(reason(ENOENT, us, kNoted | kFolderWasThere),
            "its file could not be made: No such file or directory (it cannot see the recording's "
            "folder: it has another root or other mounts)");
  EXPECT_EQ(reason(ENOENT, us, kNoted),
            "its file could not be made: No such file or directory (the recording's folder was "
            "deleted)");
  EXPECT_EQ(reason(ENOSPC, us, kNoted | kFolderWasThere | kNoInodesThen),
            "its file could not be made: No space left on device (no inodes were left)");
  EXPECT_EQ(reason(ENOSPC, us, kNoted | kFolderWasThere, kAtFirstPage),
            "its file could not be written: No space left on device");
  EXPECT_EQ(reason(EFBIG, us, kNoted, kAtFirstPage),
            "its file could not be written: File too large (its file size limit is 1.00 KiB)");
}

TEST_F(UnrecordedTest, AReaderCountsWhatTheFolderSaysOfThem) {
  for_tests::write_file(folder_.file("meta.json"),
                        R"({"not_recorded": [{"pid": 5, "command": "c", "reason": "r",
                          "processes": 3, "lost_events": 18, "lost_bytes": 1024},
                          {"pid": 6, "command": "d", "reason": "r", "lost_events": -4},
                          {"pid": 7, "command": "e", "reason": "r", "lost_events": 1e300}]})");
  Loss loss;
  add_unrecorded_processes(folder_.path(), &loss);
  EXPECT_EQ(loss.events, 18u);
  ASSERT_EQ(loss.reasons.size(), 3u);
  EXPECT_EQ(loss.reasons[0].reason,
            "not recorded: process 5 (c): r: 3 processes lost 18 events, 1.00 KiB of allocations");
}

}  // namespace
}  // namespace gpumemprof
