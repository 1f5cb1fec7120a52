#include <gtest/gtest.h>

#include "analysis/oom_message/oom_verdict.h"
#include "readers/oom_message.h"

namespace gpumemprof {
namespace {

OomLog scan_kernel_log(std::string_view text) {
  OomScanner scanner;
  scanner.feed(text);
  return scanner.finish();
}

OomMessage only(std::string_view text) {
  OomLog log = scan_kernel_log(text);
  EXPECT_EQ(log.messages.size(), 1u) << text;
  return log.messages.empty() ? OomMessage{} : log.messages[0];
}

TEST(OomKernel, TheKernelsLineNamesTheProcessAndWhatItHeld) {
  const OomMessage message = only(
      "[ 9301.1] Out of memory: Killed process 4321 (python3) total-vm:48219044kB, "
      "anon-rss:15990000kB, file-rss:2048kB, shmem-rss:0kB, UID:1000 pgtables:42000kB "
      "oom_score_adj:0\n");
  EXPECT_EQ(message.framework, "kernel");
  EXPECT_EQ(message.operation, "python3");
  ASSERT_EQ(message.processes.size(), 1u);
  EXPECT_EQ(message.processes[0].pid, 4321u);
  EXPECT_EQ(message.processes[0].in_use.bytes, 15990000ull * 1024);
  EXPECT_EQ(explain_oom(message, false).cause, OomCause::kWantOfMemory);
}

TEST(OomKernel, AContainersLimitIsItsOwn) {
  for (std::string_view text :
       {"Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:8kB",
        "    Reason:       OOMKilled\n    Exit Code:    137\n",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks",
        "slurmstepd: error: Detected 2 oom-kill event(s) in step 12.0 cgroup.",
        "srun: error: node01: task 3: Out Of Memory\n", "State: OUT_OF_MEMORY (exit code 0)\n",
        "1234.batch  batch  OUT_OF_ME+  0:125\n",
        "{\"OOMKilled\": true, \"ExitCode\": 137}\n"}) {
    EXPECT_EQ(explain_oom(only(text), false).cause, OomCause::kOwnLimit) << text;
    EXPECT_EQ(only(text).times, 1u) << text;  // an exit code beside it is no second kill
  }
}

TEST(OomKernel, AKillAloneProvesNothing) {
  for (std::string_view text :
       {"Killed", "epoch 3 loss 0.2\nKilled\n", "run.sh: line 3: 4321 Killed    python train.py\n",
        "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed. \n",
        "trainer exited with code 137\n", "{\"OOMKilled\": false, \"ExitCode\": 137}\n",
        "  exitcode  : -9 (pid: 77)\n  traceback : Signal 9 (SIGKILL) received by PID 77\n",
        "subprocess.CalledProcessError: 'python t.py' died with <Signals.SIGKILL: 9>.\n"}) {
    EXPECT_EQ(explain_oom(only(text), false).cause, OomCause::kCannotTell) << text;
  }
}

TEST(OomKernel, OtherKillsAreNoMessage) {
  for (std::string_view text : {"Killed the feature flag.", "Killed process 12 by request of ops",
                                "kill -9 12", "exit code 1370", "OOMKilled: false", "137 files",
                                "sending SIGKILL to 3 workers", "Out Of Memory",
                                "epoch 137 done, code 12", "code -9.5", "NotOOMKilledYet? no: Killed it"}) {
    EXPECT_LE(scan_kernel_log(text).messages.size(), text.starts_with("Not") ? 1u : 0u) << text;
  }
}

TEST(OomKernel, ALogOfNothingButBeginningsIsReadInLinearTime) {
  for (std::string_view part : {"Killed ", "Killed process ", "OOMKilled", "oom_kill event",
                                "exit code 137 ", "exitcode: -9 ", "Signal 9 (SIGKILL) "}) {
    std::string text;
    while (text.size() < 1 << 20) text += part;
    EXPECT_LE(scan_kernel_log(text).messages.size(), 2u) << part;  // else this test takes hours
  }
}

}  // namespace
}  // namespace gpumemprof
