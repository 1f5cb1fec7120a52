#include "run/process_exits.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// PIDFD_GET_INFO tells of a process whose parent has asked from 6.15 on.
bool kernel_tells_of_the_reaped() {
  utsname name{};
  int major = 0, minor = 0;
  if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 6 || (major == 6 && minor >= 15);
}

TEST(ProcessExits, AProcessWhoseParentAsksMeanwhileIsSeen) {
  if (!kernel_tells_of_the_reaped()) GTEST_SKIP() << "the kernel is older than 6.15";
  constexpr size_t kProcesses = 400;
  ProcessExits exits("/proc");
  for (size_t i = 1; i <= kProcesses; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      pause();
      _exit(0);
    }
    const auto stat = parse_stat(read_proc_text("/proc/" + std::to_string(pid) + "/stat"));
    ASSERT_TRUE(stat);
    exits.watch(stat->id, pid);
    std::thread parent([pid] {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    });
    for (int look = 0; exits.ended().size() < i && look < 100'000; ++look) exits.look();
    parent.join();
    ASSERT_EQ(exits.ended().size(), i);
    EXPECT_EQ(exits.ended().back().pid, pid);
    EXPECT_EQ(exits.ended().back().wait_status, SIGKILL);
  }
}

}  // namespace
}  // namespace gpumemprof
