#include "run/group_canary.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

namespace gpumemprof {
namespace {

/// Length of our command line in memory, from argv[0] on.
size_t command_line_bytes() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.size();
}

/// In the canary: system calls alone, for there may be threads.
[[noreturn]] void sit_and_wait(pid_t parent, size_t command_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it died before the line above
  prctl(PR_SET_NAME, "gmp-signals");
  // argv lies in one piece behind its first word; emptied, ps shows the name above.
  memset(program_invocation_name, 0, command_bytes);
  if (syscall(SYS_close_range, 0u, ~0u, 0u) != 0) {
    for (int fd = 0; fd < 1024; ++fd) close(fd);  // before Linux 5.9
  }
  for (;;) pause();
}

uint64_t pending_signals(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:")) return strtoull(line.c_str() + 7, nullptr, 16);
  }
  return 0;
}

}  // namespace

GroupCanary::GroupCanary() { start(); }
GroupCanary::~GroupCanary() { stop(); }

void GroupCanary::start() {
  size_t command_bytes = command_line_bytes();
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) sit_and_wait(parent, command_bytes);
}

void GroupCanary::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool GroupCanary::also_got(int signal) {
  if (pid_ <= 0) return false;
  // One system call sends to all of a group; on another CPU we may be awake before it has come
  // around, long before on a busy virtual machine.
  constexpr int kLooks = 15;
  const timespec moment = {.tv_sec = 0, .tv_nsec = 2'000'000};
  const uint64_t bit = uint64_t{1} << (signal - 1);
  for (int look = 1; nanosleep(&moment, nullptr), !(pending_signals(pid_) & bit); ++look)
    if (look == kLooks) return false;
  stop();  // what is pending cannot be taken back from outside
  start();
  return true;
}

}  // namespace gpumemprof
