// The host memory of one process, as the kernel counts it.
#pragma once

#include <string>

#include "devices/quantity.h"

namespace gpumemprof {

struct ProcessMemory {
  bool exists = false;               ///< false: gone, or a zombie that has given everything back
  Quantity resident;                 ///< RSS: pages in memory; shared ones count in every process
  Quantity peak_resident;            ///< VmHWM
  Quantity anonymous, file, shared;  ///< RssAnon, RssFile, RssShmem; their sum is the RSS
  Quantity swapped;
  Quantity
      proportional;  ///< PSS: a page shared by n processes counts 1/n. Costs the kernel a walk.
};

/// `proc` is "/proc". `with_pss`: read smaps_rollup too, which takes milliseconds for a large
/// process and is refused for those of other users.
ProcessMemory read_process_memory(const std::string& proc, int pid, bool with_pss);

}  // namespace gpumemprof
