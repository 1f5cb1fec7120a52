// Starts the program and waits for it, as invisible to it as a shell that waits for a foreground
// job.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/group_canary.h"

namespace gpumemprof {

/// Blocks every signal that we answer for the program (all but those of a fault of our own), so
/// that one place takes them with sigtimedwait and no handler is ever installed: what the program
/// inherits is what we inherited. Threads made meanwhile inherit the blocking. Restored at the end
/// of the scope.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
  const sigset_t& blocked() const { return blocked_; }
  const sigset_t& original() const { return original_; }
  bool child_signal_was_ignored() const { return child_signal_was_ignored_; }

 private:
  sigset_t blocked_, original_;
  bool child_signal_was_ignored_;  // then waitpid would not work, and the program must inherit it
};

/// Starts the program in our process group, on our terminal, with our descriptors. The answer is
/// its PID. A file without "#!" that the kernel refuses is given to /bin/sh, as execvp does.
/// Errors: kNotFound where it cannot be executed. Call it before any thread is made.
Result<pid_t> launch(const std::string& path, const std::vector<std::string>& words,
                     const std::vector<std::string>& environment, const SignalScope& signals);

/// Waits until the program ends; the answer is its status as waitpid gives it. Meanwhile:
/// - signals that were sent to us alone go on to the program; those that the terminal or a kill
/// sent to
///   the whole group have reached it already;
/// - where the terminal stops the program (Ctrl-Z), we stop too, so that the shell sees a stopped
/// job.
/// `most_resident_bytes`: of the process that had most at once, of the program, before exec() too
/// (what fork() copied of us), and those that it waited for.
int wait_for_program(pid_t program, const SignalScope& signals,
                     uint64_t* most_resident_bytes = nullptr);

/// Lets go of stdin and stdout, so that a pipe ends when the program lets go of it, and makes sure
/// that no file of ours can get descriptor 2, where our messages go.
void release_standard_streams();

/// Ends this process as the program ended: with its exit code, or by the same signal (without a
/// core dump).
[[noreturn]] void end_as(int wait_status);

}  // namespace gpumemprof
