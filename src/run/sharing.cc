#include "run/sharing.h"

#include <signal.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/json_fields.h"
#include "run/folder.h"
#include "run/meta.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
// Of torchrun, SLURM, Open MPI, MPICH and Intel MPI: their documentation of each process's
// environment.
constexpr std::array<std::string_view, 4> kRanks = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                                    "PMI_RANK"};
constexpr std::array<std::string_view, 2> kRestarts = {"TORCHELASTIC_RESTART_COUNT",
                                                       "SLURM_RESTART_COUNT"};

std::string_view value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (std::string_view entry : environment) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return entry.substr(name.size() + 1);
  }
  return {};
}

/// Of every run that recorded into the folder; what cannot be read is null.
std::vector<nlohmann::json> runs_in(const std::string& folder) {
  std::vector<nlohmann::json> runs;
  for (const std::string& name : meta_files(folder)) {
    runs.push_back(read_json_object(folder + '/' + name, kMostMetaBytes));
  }
  return runs;
}

bool is_alive(const nlohmann::json& run, std::string_view name) {
  auto pid = run.find(name);
  if (pid == run.end() || !pid->is_number_integer()) return false;
  const int64_t number = pid->get<int64_t>();
  return number > 0 && number <= INT32_MAX &&
         (kill(static_cast<pid_t>(number), 0) == 0 || errno != ESRCH);
}

bool is_of_this_machine(const nlohmann::json& run) {
  utsname here = {};
  uname(&here);
  return text_field(run, "host") == here.nodename;
}

/// Of another machine's runs the end alone can be known.
bool goes_on(const nlohmann::json& run) {
  if (!run.is_object() || run.contains("exit")) return false;
  return !is_of_this_machine(run) || is_alive(run, "run_pid") || is_alive(run, "pid");
}

/// "pid 4711 (python train.py)".
std::string recorded_program(const nlohmann::json& run) {
  const nlohmann::json* words = list_field(run, "command");
  std::string command;
  for (const nlohmann::json& word : words ? *words : nlohmann::json::array()) {
    if (word.is_string())
      command += (command.empty() ? "" : " ") + std::string(word.get<std::string>());
  }
  const char* pid = is_alive(run, "pid") ? "pid" : "run_pid";
  return "pid " + std::to_string(run[pid].get<int64_t>()) + " (" + command + ')';
}

bool is_another_rank(const nlohmann::json& run, const std::vector<std::string>& environment) {
  auto its = run.is_object() ? run.find("environment") : run.end();
  if (its == run.end() || !its->is_object()) return false;
  return std::ranges::any_of(kRanks, [&](std::string_view name) {
    const std::string_view mine = value_of(environment, name);
    const std::string other = text_field(*its, std::string(name).c_str());
    return !mine.empty() && !other.empty() && mine != other;
  });
}

bool is_started_again(const std::vector<std::string>& environment) {
  return std::ranges::any_of(kRestarts, [&](std::string_view name) {
    const std::string_view count = value_of(environment, name);
    return !count.empty() && count != "0";
  });
}

}  // namespace

Status may_record_into(const std::string& folder, const std::vector<std::string>& environment) {
  auto is_recording = is_recording_folder(folder);
  if (!is_recording || !*is_recording || is_started_again(environment)) return {};
  const std::vector<nlohmann::json> runs = runs_in(folder);
  for (const nlohmann::json& run : runs) {
    if (!goes_on(run) || !is_of_this_machine(run) || is_another_rank(run, environment)) continue;
    return fail(ErrorCode::kUsage, folder + ": is being recorded by " + recorded_program(run) +
                                       ": name another folder");
  }
  const bool is_shared =
      std::ranges::any_of(runs, goes_on) ||
      (!runs.empty() && std::ranges::all_of(runs, [&](const nlohmann::json& run) {
        return is_another_rank(run, environment);
      }));
  if (is_shared) return {};
  return fail(
      ErrorCode::kUsage,
      folder + ": already has a recording: name another folder, or replace it with --force");
}

bool has_recorded_nothing(const std::string& folder) {
  const auto is_note = [](std::string_view name) {
    return name.ends_with(".json") && name.starts_with("meta.");
  };
  return std::ranges::all_of(files_of_recording(folder), [&](const std::string& name) {
           return is_note(name) || name.ends_with(".gms");
         }) &&
         std::ranges::all_of(runs_in(folder), [](const nlohmann::json& run) {
           if (!run.is_object() || !run.contains("exit")) return false;
           const nlohmann::json* others = list_field(run, "not_recorded");
           return !others || std::ranges::none_of(*others, [](const nlohmann::json& one) {
             return one.contains("lost_events");
           });
         });
}

Status remove_recording(const std::string& folder) {
  auto is_recording = is_recording_folder(folder);
  if (!is_recording || !*is_recording) return {};
  if (std::ranges::any_of(runs_in(folder), goes_on)) {
    return fail(
        ErrorCode::kUsage,
        folder + ": a run is still recording into it: --force replaces only a finished recording");
  }
  std::error_code error;
  for (const std::string& name : files_of_recording(folder)) {
    fs::remove_all(folder + '/' + name, error);
    if (error)
      return fail(ErrorCode::kUsage,
                  folder + '/' + name + ": cannot be deleted: " + error.message());
  }
  return {};
}

}  // namespace gpumemprof
