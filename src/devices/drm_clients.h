// What the kernel tells of processes that have opened a graphics card: /proc/PID/fdinfo.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// One opened card, as the kernel's drm-usage-stats text has it.
struct DrmClient {
  std::string driver, pci;
  uint64_t id = 0;
  /// Bytes by region ("vram", "gtt", "vram0", "local0", "system"): those that are resident, else
  /// what drm-memory- says, which is the same under its old name, else all that was asked for.
  std::map<std::string, uint64_t> regions;
};

/// Parses one fdinfo text. False where it is of no DRM client, or has no identifier.
bool parse_drm_client(std::string_view text, DrmClient* out);

struct DrmProcess {
  int pid = 0;
  std::string driver, pci;
  std::map<std::string, uint64_t> regions;  ///< added up over the process's clients
};

struct DrmProcesses {
  std::vector<DrmProcess> processes;  ///< by PID and card
  uint64_t unreadable = 0;            ///< processes whose descriptors we may not look at
};

/// Walks /proc. A client that several processes hold (a descriptor handed on, a fork) counts once,
/// with the lowest PID. `root` stands for "/".
DrmProcesses read_drm_processes(const std::string& root);

}  // namespace gpumemprof
