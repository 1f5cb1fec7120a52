#include "run/meta.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/host_name.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxNames = 100'000;

constexpr std::array<std::string_view, 17> kAllowedNames = {"CUDA_VISIBLE_DEVICES",
                                                            "HIP_VISIBLE_DEVICES",
                                                            "ROCR_VISIBLE_DEVICES",
                                                            "PYTORCH_CUDA_ALLOC_CONF",
                                                            "PYTORCH_ALLOC_CONF",
                                                            "PYTORCH_HIP_ALLOC_CONF",
                                                            "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                                            "CUBLAS_WORKSPACE_CONFIG",
                                                            "OMP_NUM_THREADS",
                                                            "MKL_NUM_THREADS",
                                                            "RANK",
                                                            "SLURM_PROCID",
                                                            "OMPI_COMM_WORLD_RANK",
                                                            "PMI_RANK",
                                                            "LOCAL_RANK",
                                                            "WORLD_SIZE",
                                                            "LOCAL_WORLD_SIZE"};
constexpr std::array<std::string_view, 4> kAllowedPrefixes = {"NCCL_", "TF_", "XLA_", "JAX_"};
// TF_VAR_* and TF_CLI_* belong to another tool and do carry credentials; a name that says it holds
// one stays out of every family.
constexpr std::array<std::string_view, 8> kRefusedWords = {
    "KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "TF_VAR_", "TF_CLI_"};

Json exit_json(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return {{"code", WEXITSTATUS(wait_status)}};
  const int number = WTERMSIG(wait_status);
  return {{"signal", number}, {"signal_name", signal_name(number)}};
}

Json kills_json(const KernelKills& kills) {
  Json json = {{"count", *kills.count}, {"of", kills.is_of_cgroup ? "cgroup" : "machine"}};
  if (kills.limit_bytes) json["limit_bytes"] = *kills.limit_bytes;
  return json;
}

Json environment_json(const std::vector<std::string>& environment) {
  Json result = Json::object();
  for (const std::string& entry : environment) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    std::string name = entry.substr(0, equals);
    if (is_allowed_environment_name(name)) result[name] = entry.substr(equals + 1);
  }
  return result;
}

Json not_recorded_json(const NotRecorded& one) {
  Json json = {{"pid", one.pid}, {"command", one.command}, {"reason", one.reason}};
  if (one.lost_events == 0) return json;
  json["processes"] = one.processes;
  json["lost_events"] = one.lost_events;
  json["lost_bytes"] = one.lost_bytes;
  return json;
}

Status write_file(const std::string& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(ErrorCode::kSystem, path + ": cannot be written: " + strerror(errno));
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  int error = done == text.size() ? 0 : errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0) return {};
  unlink(path.c_str());
  return fail(ErrorCode::kSystem, path + ": cannot be written: " + strerror(error));
}

/// In one step: a reader sees the old or the new content.
Status replace_file(const std::string& path, const std::string& temporary,
                    const std::string& text) {
  if (auto written = write_file(temporary, text); !written) return written;
  if (rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  unlink(temporary.c_str());
  return fail(ErrorCode::kSystem, path + ": cannot be replaced: " + strerror(error));
}

std::string own_name(int attempt, int pid) {
  if (attempt == 0) return "meta.json";
  std::string name = "meta." + std::to_string(pid);
  if (attempt == 1) return name + ".json";
  // A PID that came back, or the same PID on another host.
  return name + '.' + std::to_string(attempt - 1) + ".json";
}

}  // namespace

std::optional<uint64_t> address_space_limit_bytes() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string signal_name(int number) {
  // As sigabbrev_np has them, which glibc has from 2.32 on: by their numbers on x86-64 and aarch64.
  static constexpr const char* kNames[] = {
      nullptr, "HUP",  "INT",  "QUIT", "ILL",    "TRAP", "ABRT", "BUS",  "FPE",  "KILL", "USR1",
      "SEGV",  "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN",
      "TTOU",  "URG",  "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
  const bool is_known = number > 0 && static_cast<size_t>(number) < std::size(kNames);
  return is_known ? std::string("SIG") + kNames[number] : "signal " + std::to_string(number);
}

std::vector<NotRecorded> not_recorded(const std::vector<UnrecordedProcess>& processes) {
  std::vector<NotRecorded> result;
  for (const UnrecordedProcess& one : processes) {
    result.push_back({.pid = one.pid,
                      .command = one.command,
                      .reason = one.reason,
                      .processes = one.processes,
                      .lost_events = one.lost_events,
                      .lost_bytes = one.lost_bytes});
  }
  return result;
}

namespace {

/// Replaces the file by what `change` makes of its object.
template <class Change>
Status change_meta(const std::string& path, const Change& change) {
  auto text = read_small_file(path, kMostMetaBytes);
  if (!text) return std::unexpected(text.error());
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kBadInput, path + ": is not a JSON object");
  change(json);
  const size_t slash = path.rfind('/') + 1;
  const std::string temporary = path.substr(0, slash) + ".meta." + path.substr(slash) + ".tmp";
  const std::string whole = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  return replace_file(path, temporary, whole);
}

}  // namespace

Status add_not_recorded(const std::string& path, const std::vector<NotRecorded>& more) {
  return change_meta(path, [&](Json& json) {
    Json& list = json["not_recorded"];
    if (!list.is_array()) list = Json::array();
    for (const NotRecorded& one : more) list.push_back(not_recorded_json(one));
  });
}

Status add_why_nothing(const std::string& path, const std::string& why) {
  return change_meta(path, [&](Json& json) { json["nothing_recorded"] = why; });
}

bool is_allowed_environment_name(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (std::string_view word : kRefusedWords) {
    if (upper.find(word) != std::string::npos) return false;
  }
  for (std::string_view allowed : kAllowedNames) {
    if (name == allowed) return true;
  }
  for (std::string_view prefix : kAllowedPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::string utc_time(int64_t unix_ns) {
  time_t seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  tm utc = {};
  gmtime_r(&seconds, &utc);
  char date[40], text[64];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(unix_ns / 1'000'000 % 1000));
  return text;
}

std::string meta_json(const RunMeta& meta) {
  utsname system = {};
  uname(&system);
  const std::optional<uint64_t> address_space = address_space_limit_bytes();
  Json json = {
      {"schema", kMetaSchema},
      {"gpumemprof_version", meta.gpumemprof_version},
      {"command", meta.command},
      {"program", meta.program},
      {"working_directory", meta.working_directory},
      {"host", system.nodename},
      {"kernel", std::string(system.sysname) + ' ' + system.release},
      {"machine", system.machine},
      {"cpu_count", sysconf(_SC_NPROCESSORS_ONLN)},
      {"address_space_limit_bytes", address_space ? Json(*address_space) : Json()},
      {"run_pid", meta.run_pid},
      {"pid", meta.pid != 0 ? Json(meta.pid) : Json()},
      {"start_time", utc_time(meta.start_unix_ns)},
      {"stacks", meta.stacks},
      {"free_stacks", meta.free_stacks},
      {"cpu", meta.record_cpu},
      {"host_blocks", meta.record_host},
      {"max_disk_bytes", meta.max_disk_bytes != 0 ? Json(meta.max_disk_bytes) : Json()},
      {"environment", environment_json(meta.environment)},
  };
  if (meta.ended) {
    json["end_time"] = utc_time(meta.end_unix_ns);
    json["end_time_ns"] = meta.end_time_ns;
    json["exit"] = exit_json(meta.wait_status);
    if (meta.kernel_kills.count) json["kernel_kills"] = kills_json(meta.kernel_kills);
  }
  for (const ShmFile& file : meta.left_in_shm)
    json["left_in_shm"].push_back(
        {{"name", file.name}, {"size_bytes", file.bytes}, {"own", file.is_own}});
  if (!meta.exits.empty()) json["exits"] = Json::array();
  for (const ProcessExitStatus& one : meta.exits) {
    json["exits"].push_back({{"pid", one.pid},
                             {"start_ticks", one.start_ticks},
                             {"end_time_ns", one.time_ns},
                             {"exit", exit_json(one.wait_status)}});
  }
  json["not_recorded"] = Json::array();
  for (const NotRecorded& one : meta.not_recorded)
    json["not_recorded"].push_back(not_recorded_json(one));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<MetaFile> MetaFile::create(const std::string& folder, const RunMeta& meta) {
  MetaFile file;
  utsname system = {};
  uname(&system);
  char host[sizeof system.nodename];
  copy_host_name(system.nodename, host, sizeof host);
  file.temporary_ = folder + "/.meta." + host + '.' + std::to_string(meta.run_pid) + ".tmp";
  if (auto written = write_file(file.temporary_, meta_json(meta)); !written)
    return std::unexpected(written.error());
  for (int attempt = 0; attempt < kMaxNames; ++attempt) {
    file.path_ = folder + '/' + own_name(attempt, meta.run_pid);
    // O_EXCL claims the name on every file system (RENAME_NOREPLACE and link are refused by some);
    // the moment between claim and rename shows an empty file, which readers of meta.json must
    // bear.
    int fd = open(file.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) break;
    close(fd);
    if (rename(file.temporary_.c_str(), file.path_.c_str()) == 0) return file;
    unlink(file.path_.c_str());
    break;
  }
  int error = errno;
  unlink(file.temporary_.c_str());
  return fail(ErrorCode::kSystem, file.path_ + ": cannot be written: " + strerror(error));
}

Status MetaFile::rewrite(const RunMeta& meta) const {
  return replace_file(path_, temporary_, meta_json(meta));
}

}  // namespace gpumemprof
