// The host memory of one process, as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>
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

/// What a process has mapped, and may map (ulimit -v).
struct MappedMemory {
  uint64_t mapped_bytes = 0, limit_bytes = 0;
};
/// Absent where the process has no such limit, or is gone.
std::optional<MappedMemory> read_address_space(const std::string& proc, int pid);

/// What a walk through the page tables of a process tells, which takes the kernel milliseconds for
/// a large one (smaps_rollup, smaps). Refused for processes of other users.
struct ProcessPages {
  /// PSS, and the same by class: their sum.
  Quantity proportional, proportional_anonymous, proportional_file, proportional_shared;
  Quantity private_clean, private_dirty;  ///< that this process alone has mapped
  Quantity locked;                        ///< mlock, a part of the PSS
  /// Of private mappings of files that hold no code, what the process wrote to: its own copies.
  Quantity copied_file;
  std::string most_copied;  ///< the file of which it has copied most; empty where it has none
};
ProcessPages read_process_pages(const std::string& proc, int pid);

}  // namespace gpumemprof
