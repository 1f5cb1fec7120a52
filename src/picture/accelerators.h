// The one place where what a device says of itself comes into a live picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "devices/quantity.h"

namespace gpumemprof {

/// One accelerator of this machine as its driver sees it: all processes together.
struct Accelerator {
  int index = 0;
  std::string name;                ///< "cuda:0": the word that a recording's devices have
  std::string model, uuid;         ///< empty where not told
  Quantity total, used, free;      ///< bytes of its memory
  std::map<int, uint64_t> by_pid;  ///< bytes a process holds on it, where the driver tells
};

struct Accelerators {
  std::vector<Accelerator> devices;
  std::string absent_because;  ///< why `devices` cannot be told; empty where it can
};

/// Asks the collectors of src/devices. Metrics, page and terminal view show what comes from here
/// and ask nobody else. `root` stands for "/" in tests.
Accelerators read_accelerators(const std::string& root);

}  // namespace gpumemprof
