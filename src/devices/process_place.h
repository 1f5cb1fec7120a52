// Whose PID it is that a driver names.
#pragma once

#include <string>

#include "devices/accelerator.h"

namespace gpumemprof {

/// Drivers name processes by PIDs of the machine, newer ones by those of whoever asks. So in a PID
/// namespace of our own, as a container has one, a number may belong to nobody here, or to somebody
/// else.
class ProcessPlace {
 public:
  /// `root` stands for "/".
  explicit ProcessPlace(std::string root);

  /// Fills `here`, `not_here_because` and `command` of a process that uses the device `driver`
  /// ("nvidia", …). In the machine's own namespace every PID is right. Elsewhere a process here
  /// counts only if it has that driver's libraries or devices mapped.
  void look_up(AcceleratorProcess* process, const std::string& driver) const;
  /// The same for a PID that our own /proc has told: there is no doubt whose it is.
  void look_up_own(AcceleratorProcess* process) const;

 private:
  std::string proc_;
  bool whole_machine_ = false;  // we see its own PIDs
};

}  // namespace gpumemprof
