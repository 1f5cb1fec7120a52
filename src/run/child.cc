#include "run/child.h"

#include <fcntl.h>
#include <paths.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/descriptor.h"

namespace gpumemprof {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

struct ChildPlan {
  const char* path;
  char** words;
  char** shell_words;
  char** environment;
  const SignalScope* signals;
  int failure_pipe;
};

/// In the child, between fork and exec: system calls alone.
[[noreturn]] void become_program(const ChildPlan& plan) {
  if (plan.signals->child_signal_was_ignored()) signal(SIGCHLD, SIG_IGN);
  sigprocmask(SIG_SETMASK, &plan.signals->original(), nullptr);
  restore_descriptor_limit();
  execve(plan.path, plan.words, plan.environment);
  if (errno == ENOEXEC) execve(_PATH_BSHELL, plan.shell_words, plan.environment);
  int error = errno;
  [[maybe_unused]] ssize_t n = write(plan.failure_pipe, &error, sizeof error);
  _exit(127);
}

/// True where a shell waits for us to stop as well. A SIGSTOP counts only in front of a terminal
/// (editors answer Ctrl-Z with one): elsewhere it was sent to the program alone, as its SIGCONT
/// will be.
bool stops_the_job(int signal) {
  if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) return true;
  int terminal = open(_PATH_TTY, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (terminal < 0) return false;
  bool foreground = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return foreground;
}

/// Stops this process with the signal that stopped the program; comes back when it is continued.
void stop_with(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  kill(getpid(), signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);  // stops here; in an orphaned group nothing happens
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

/// True where the program must get the signal from us.
bool was_sent_to_us_alone(const siginfo_t& info, pid_t program, GroupCanary* canary) {
  if (info.si_signo == SIGCHLD || info.si_code == SI_KERNEL)
    return false;  // Ctrl-C, hangup, resize
  if (info.si_pid == getpid() || info.si_pid == program) return false;
  return getpgid(program) != getpgrp() || !canary->also_got(info.si_signo);
}

void pass_on(const siginfo_t& info, pid_t program) {
  if (info.si_code == SI_QUEUE) {
    sigqueue(program, info.si_signo, info.si_value);
  } else {
    kill(program, info.si_signo);
  }
}

}  // namespace

SignalScope::SignalScope() {
  sigfillset(&blocked_);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked_, own);
  pthread_sigmask(SIG_BLOCK, &blocked_, &original_);
  struct sigaction before;
  sigaction(SIGCHLD, nullptr, &before);
  child_signal_was_ignored_ = before.sa_handler == SIG_IGN || (before.sa_flags & SA_NOCLDWAIT);
  if (child_signal_was_ignored_) signal(SIGCHLD, SIG_DFL);
}

SignalScope::~SignalScope() {
  // What came for the program while it ended is no wish to end us too.
  timespec now = {};
  while (sigtimedwait(&blocked_, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &original_, nullptr);
}

Result<pid_t> launch(const std::string& path, const std::vector<std::string>& words,
                     const std::vector<std::string>& environment, const SignalScope& signals) {
  // Both ends close at exec: the pipe lives no longer than the attempt to start, and an end of file
  // without an error number means that the program is running.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::kSystem, std::string("pipe: ") + strerror(errno));
  std::vector<std::string> shell = words;
  shell.insert(shell.begin(), "sh");
  shell[1] = path;
  auto word_pointers = pointers(words), shell_pointers = pointers(shell);
  auto environment_pointers = pointers(environment);
  ChildPlan plan = {path.c_str(),
                    word_pointers.data(),
                    shell_pointers.data(),
                    environment_pointers.data(),
                    &signals,
                    ends[1]};
  pid_t pid = fork();
  if (pid == 0) become_program(plan);
  int fork_error = errno;
  close(ends[1]);
  int error = 0;
  ssize_t n = 0;
  if (pid > 0) {
    while ((n = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  if (pid < 0) {
    return fail(ErrorCode::kSystem, std::string("cannot start a process: ") + strerror(fork_error));
  }
  if (n != sizeof error) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail(ErrorCode::kNotFound, path + ": cannot be executed: " + strerror(error));
}

int wait_for_program(pid_t program, const SignalScope& signals,
                     uint64_t* most_resident_bytes) {
  GroupCanary canary;
  for (;;) {
    int status = 0;
    rusage used = {};
    pid_t changed = wait4(program, &status, WNOHANG | WUNTRACED, &used);
    if (changed == program && !WIFSTOPPED(status)) {
      if (most_resident_bytes)
        *most_resident_bytes = static_cast<uint64_t>(used.ru_maxrss) * 1024;
      return status;
    }
    if (changed == program && stops_the_job(WSTOPSIG(status))) stop_with(WSTOPSIG(status));
    if (changed < 0 && errno == ECHILD)
      return W_EXITCODE(1, 0);  // cannot be; better than to wait forever
    // SIGCHLD ends the wait; the time limit is only for one that got lost.
    timespec limit = {.tv_sec = 0, .tv_nsec = 250'000'000};
    siginfo_t info = {};
    if (sigtimedwait(&signals.blocked(), &info, &limit) <= 0) continue;
    if (was_sent_to_us_alone(info, program, &canary)) pass_on(info, program);
  }
}

void release_standard_streams() {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (fcntl(STDERR_FILENO, F_GETFD) < 0) dup2(null, STDERR_FILENO);
  if (null > STDERR_FILENO) close(null);
}

void end_as(int wait_status) {
  if (!WIFSIGNALED(wait_status)) _exit(WEXITSTATUS(wait_status));
  int signal_number = WTERMSIG(wait_status);
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);  // a core_pattern that is a pipe does not ask RLIMIT_CORE
  signal(signal_number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal_number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), signal_number);
  _exit(128 + signal_number);  // the first process of a container survives its own signals
}

}  // namespace gpumemprof
