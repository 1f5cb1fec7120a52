// Tells a signal that was sent to us alone from one that was sent to our whole process group.
#pragma once

#include <sys/types.h>

namespace gpumemprof {

/// The kernel does not say which of the two it was, and both mistakes hurt: a signal that is passed
/// on twice may turn a graceful end into a forced one (torchrun, timeout), one that is not passed
/// on is lost. So a process without descriptors waits in our group with all signals blocked: a
/// signal for the group is pending there too. It dies with us. Its name and command line do not
/// match ours, so that `pkill` finds us and not it.
///
/// Must be made while the signals in question are blocked; by the thread that lives longest.
class GroupCanary {
 public:
  GroupCanary();
  ~GroupCanary();
  GroupCanary(const GroupCanary&) = delete;
  GroupCanary& operator=(const GroupCanary&) = delete;
  /// True where the canary got this signal as well. False also where there is no canary.
  bool also_got(int signal);

 private:
  void start();
  void stop();
  pid_t pid_ = -1;
};

}  // namespace gpumemprof
