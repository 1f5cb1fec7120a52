// Traces of several processes as one archive for https://ui.perfetto.dev: a TAR of a trace each and
// a manifest (https://perfetto.dev/docs/reference/perfetto-manifest), which says whose each is and
// how their clocks relate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event_source.h"

namespace gpumemprof {

/// What of the archive is not in its traces. Not thread-safe.
class PerfettoArchive {
 public:
  /// The name in the archive of what `source` holds, one process or a snapshot: "rank-3.node1.4711.pftrace".
  /// `file` is what it was read from.
  std::string add(const EventSource& source, std::string_view file);
  /// Of all that was added. Processes of one boot of one host are on one machine, and so on one
  /// clock; machines are brought together by their wall clocks.
  std::string manifest(std::string_view version) const;

 private:
  struct Machine {
    std::string host, name;
    int64_t realtime_offset_ns;
    std::vector<uint32_t> pids;
  };
  struct Member {
    std::string path, machine;  ///< `machine` empty: not known
  };
  const std::string& machine_of(const Process& process);

  std::vector<Machine> machines_;
  std::vector<Member> members_;
};

inline constexpr std::string_view kManifestName = "perfetto_manifest.json";

/// The header of a member of a TAR (POSIX ustar). `name` has at most 100 bytes.
std::string tar_header(std::string_view name, uint64_t size_bytes);
/// What follows a member, and what ends the archive.
std::string tar_padding(uint64_t size_bytes);
std::string tar_end();
inline constexpr uint64_t kMostTarBytes = (uint64_t{1} << 33) - 1;  ///< of a member

}  // namespace gpumemprof
