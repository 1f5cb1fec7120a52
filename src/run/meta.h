// meta.json of a recording's folder: what was run, where, and how it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/unrecorded.h"
#include "run/process_exits.h"
#include "run/shm_files.h"

namespace gpumemprof {

inline constexpr const char* kMetaSchema = "gpumemprof.recording/1";
inline constexpr size_t kMostMetaBytes = 16u << 20;  ///< of one meta.json

/// A process of which nothing was recorded though PyTorch was in it, or that could hold no probe.
struct NotRecorded {
  int pid = 0;
  std::string command;
  std::string reason;
  /// Of a process that counted what it could not record, and of others like it: 0 where nobody
  /// counted.
  uint64_t processes = 0, lost_events = 0, lost_bytes = 0;
};
std::vector<NotRecorded> not_recorded(const std::vector<UnrecordedProcess>& processes);

/// Of processes, by the kernel, for want of memory, while the program ran.
struct KernelKills {
  std::optional<uint64_t> count;        ///< absent where nobody counts
  bool is_of_cgroup = false;            ///< else of the machine
  std::optional<uint64_t> limit_bytes;  ///< of the cgroup
};

/// This process's (ulimit -v), and the program's until it sets another; absent: there is none.
std::optional<uint64_t> address_space_limit_bytes();

/// "SIGKILL"; "signal 64" where it has no name.
std::string signal_name(int number);

struct RunMeta {
  std::vector<std::string> command;
  std::string program;  ///< the file that was executed
  std::string gpumemprof_version;
  std::string working_directory;
  std::string stacks;
  bool free_stacks = false;
  bool record_cpu = true;
  bool record_host = false;
  uint64_t max_disk_bytes = 0;
  int64_t start_unix_ns = 0;
  int run_pid = 0;
  int pid = 0;                           ///< of the program; 0 until it is started
  std::vector<std::string> environment;  ///< "NAME=value"; only allowed names are written
  bool ended = false;
  int64_t end_unix_ns = 0;
  int64_t end_time_ns = 0;  ///< CLOCK_MONOTONIC of the same
  int wait_status = 0;  ///< as waitpid gives it
  KernelKills kernel_kills;
  std::vector<ShmFile> left_in_shm;  ///< made while the program ran, and used by nobody
  std::vector<NotRecorded> not_recorded;
  std::vector<ProcessExitStatus> exits;  ///< of recorded processes that others started
};

/// Names whose values explain a training run and hold no secrets; everything else stays out.
bool is_allowed_environment_name(std::string_view name);

/// Bytes that are no UTF-8 become U+FFFD.
std::string meta_json(const RunMeta& meta);

/// The file, claimed for one run: meta.json, or meta.PID.json where another run has that already.
class MetaFile {
 public:
  /// Writes `meta` to a name that nobody has (0600). Errors: kUsage, one line: the folder cannot be
  /// written.
  static Result<MetaFile> create(const std::string& folder, const RunMeta& meta);
  /// Replaces the content in one step: a reader sees the old or the new one. Errors: kSystem.
  Status rewrite(const RunMeta& meta) const;
  const std::string& path() const { return path_; }

 private:
  std::string temporary_;
  std::string path_;
};

/// Adds to what a meta.json says was not recorded, in one step. Errors: kSystem, kBadInput.
Status add_not_recorded(const std::string& path, const std::vector<NotRecorded>& more);

/// Adds what `run` said of a program of which it recorded nothing. Errors: kSystem, kBadInput.
Status add_why_nothing(const std::string& path, const std::string& why);

/// "2024-01-31T23:59:59.123Z".
std::string utc_time(int64_t unix_ns);

}  // namespace gpumemprof
