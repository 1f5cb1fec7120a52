// Finds the probe library and makes the environment in which the program starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

inline constexpr const char* kProbeLibrary = "libgpumemprof_probe.so";
inline constexpr const char* kHostLibrary = "libgpumemprof_host.so";

/// Where the probe is: $GPUMEMPROF_PROBE, else beside the executable, in ../lib or
/// ../lib/gpumemprof. Errors: kSystem with one line that names what was tried.
Result<std::string> find_probe(const char* override_path, const std::string& executable);

/// The library of `run --host`, which lies beside the probe; empty where it does not.
std::string host_library_beside(const std::string& probe);

/// The folder with the Python package that was installed with the executable; empty: there is none.
std::string find_package(const std::string& executable);

/// True where the loader would read the path as something else: LD_PRELOAD is split at spaces and
/// colons, and "$ORIGIN" and its like are replaced.
bool path_needs_alias(const std::string& path);
/// Where folders with such links are made: TMPDIR, or /tmp where that could not be named either.
std::string folder_for_aliases();

/// A path of the probe that LD_PRELOAD can hold: the path itself or, where that has a space, a
/// colon or a dollar sign, a link in a private folder (0700) that lives as long as this object.
class ProbePath {
 public:
  /// Errors: kSystem where the link cannot be made.
  static Result<ProbePath> make(const std::string& probe);
  ProbePath(ProbePath&& other) noexcept;
  ProbePath& operator=(ProbePath&&) = delete;
  ~ProbePath();
  const std::string& path() const { return path_; }
  /// Leaves the link behind: a process that still runs may start others with the same LD_PRELOAD,
  /// and the loader would complain on their stderr.
  void keep() { folder_.clear(); }

 private:
  ProbePath() = default;
  std::string path_;
  std::string folder_;  // empty: no link
};

/// What the probe is told through its environment.
struct ProbeSettings {
  std::string library;
  std::string folder;  ///< absolute
  std::string arena;   ///< ArenaKeeping::address(); empty: none
  std::string stacks = "python";
  bool free_stacks = false;
  bool record_cpu = true;
  uint64_t max_disk_bytes = 0;  ///< 0 = no limit
  std::optional<bool>
      explain_leaks;         ///< the Python half tells who holds tensors; unset: where it is cheap
  bool attribution = true;   ///< modules, nodes, saved tensors, names, steps
  std::string package;       ///< find_package(); empty: that of the program's environment alone
  std::string driver_links;  ///< folder of DriverLinks; empty: the CUDA driver is left alone
  std::string driver;        ///< the real one, absolute
  std::vector<std::string> runtimes;  ///< further libraries that record, absolute
};

/// `environment` as "NAME=value" lines with the probe's own added. An existing LD_PRELOAD keeps its
/// libraries in front (jemalloc must stay first). Settings of an outer recording are replaced, and
/// its stand-in for the driver goes.
std::vector<std::string> probe_environment(const std::vector<std::string>& environment,
                                           const ProbeSettings& settings);

}  // namespace gpumemprof
