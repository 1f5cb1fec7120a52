// Which device of which process a figure is of.
#pragma once

#include <string>

#include "trace/tables.h"

namespace gpumemprof {

/// "cpu"; of one of several processes "process 7, cpu", of a rank "rank 1, cpu".
inline std::string device_place(const Tables& tables, const Device& device) {
  const std::string name = device_name(device);
  if (tables.processes.size() < 2 || device.process >= tables.processes.size()) return name;
  const Process& process = tables.processes[device.process];
  if (process.rank) return "rank " + std::to_string(*process.rank) + ", " + name;
  return process.pid == 0 ? name : "process " + std::to_string(process.pid) + ", " + name;
}

}  // namespace gpumemprof
