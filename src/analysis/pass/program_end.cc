#include "analysis/pass/program_end.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/file.h"
#include "base/folder.h"
#include "base/json_fields.h"
#include "readers/oom_message.h"
#include "readers/traceback_line.h"
#include "recording/chunk_scan.h"
#include "recording/recording_file.h"
#include "recording/samples_writer.h"
#include "recording/writer_state.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostBytes = 16u << 20;
constexpr size_t kMostFiles = 10'000;
constexpr size_t kMostDumps = 1000;
constexpr size_t kMostHolders = 1000;
constexpr size_t kMostFrames = 256;

/// Names in a folder that begin so, sorted.
std::vector<std::string> names_with(std::string_view beginning, const std::string& folder,
                                    size_t most) {
  return names_in(folder, [&](std::string_view name) { return name.starts_with(beginning); }, most);
}

bool is_folder(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

template <class End>
void take_exit(const nlohmann::json& exit, End* end) {
  end->signal = text_field(exit, "signal_name");
  if (auto code = number_field(exit, "code"); code && *code <= 255)
    end->exit_code = static_cast<int>(*code);
}

void take_exits(const nlohmann::json& meta, ProgramEnd* end) {
  const nlohmann::json* list = list_field(meta, "exits");
  for (size_t i = 0; list && i < std::min(list->size(), kMostFiles); ++i) {
    const nlohmann::json& one = (*list)[i];
    ProcessExit exit{.pid = number_field(one, "pid").value_or(0),
                     .start_ticks = number_field(one, "start_ticks").value_or(0)};
    if (one.is_object() && one.contains("exit")) take_exit(one["exit"], &exit);
    end->exits.push_back(std::move(exit));
  }
}

NamedProcess process_in(const nlohmann::json& json) {
  return {number_field(json, "pid").value_or(0), number_field(json, "start_ticks").value_or(0),
          text_field(json, "host")};
}

/// Whoever writes to the files of a folder: recorded processes, and `run` to its samples.
struct FileWriter {
  uint32_t pid = 0;
  WriterState state = WriterState::kElsewhere;
  bool is_run = false;
};

std::vector<FileWriter> writers_in(const std::string& folder) {
  std::vector<FileWriter> out;
  const auto is_of_writer = [](std::string_view name) {
    return name.ends_with(".gmp") || name.ends_with(kSamplesSuffix);
  };
  for (const std::string& name : names_in(folder, is_of_writer, kMostFiles)) {
    auto file = RecordingFile::open(folder + '/' + name, FileMode::kRead);
    if (!file) continue;
    const auto header = read_file_header(**file);
    if (!header) continue;
    out.push_back({.pid = header->pid,
                   .state = writer_state(*header, read_file_state(**file)),
                   .is_run = name.ends_with(kSamplesSuffix)});
  }
  return out;
}

/// Of a run that says no end. The only run of a folder has all that is recorded there.
RunState state_of(const ProgramEnd& run, bool is_only_run, const std::vector<FileWriter>& writers) {
  RunState state = RunState::kElsewhere;
  for (const FileWriter& writer : writers) {
    const bool is_its = writer.is_run ? writer.pid == run.run_pid
                                      : is_only_run || writer.pid == uint64_t(run.pid);
    if (!is_its) continue;
    if (writer.state == WriterState::kAlive) return RunState::kRunning;
    if (writer.state == WriterState::kGone) state = RunState::kGone;
  }
  return state;
}

std::optional<ProgramEnd> run_of(const nlohmann::json& meta) {
  if (!meta.is_object()) return std::nullopt;
  ProgramEnd end;
  if (const nlohmann::json* words = list_field(meta, "command")) {
    for (const nlohmann::json& word : *words) {
      if (!word.is_string() || end.command.size() > kMostFieldBytes) continue;
      end.command += (end.command.empty() ? "" : " ") + word.get<std::string>();
    }
  }
  end.pid = static_cast<int64_t>(number_field(meta, "pid").value_or(0));
  end.run_pid = number_field(meta, "run_pid").value_or(0);
  end.host = text_field(meta, "host");
  if (const nlohmann::json* left = list_field(meta, "left_in_shm")) {
    for (size_t i = 0; i < std::min(left->size(), kMostFiles); ++i) {
      const nlohmann::json& one = (*left)[i];
      const nlohmann::json* is_own = field_of(one, "own");
      end.left_in_shm.push_back({.name = text_field(one, "name"),
                                 .bytes = number_field(one, "size_bytes").value_or(0),
                                 .is_own = is_own && is_own->is_boolean() && is_own->get<bool>()});
    }
  }
  take_exits(meta, &end);
  end.address_space_limit_bytes = number_field(meta, "address_space_limit_bytes");
  auto exit = meta.find("exit");
  if (exit == meta.end()) {
    end.state = RunState::kElsewhere;
    return end;
  }
  take_exit(*exit, &end);
  if (auto kills = meta.find("kernel_kills"); kills != meta.end()) {
    end.kernel_kills = number_field(*kills, "count");
    end.kills_are_of_cgroup = text_field(*kills, "of") == "cgroup";
    end.memory_limit_bytes = number_field(*kills, "limit_bytes");
  }
  return end;
}

/// The host devices of TensorFlow and JAX, whose names begin with their framework's.
constexpr std::array<std::string_view, 3> kHostOfFrameworks = {
    "tensorflow:cpu", "tensorflow:mklcpu", "jax:cpu"};

/// The framework whose module defines the exception, where its devices are named after it.
std::string_view framework_of(std::string_view module) {
  if (module.starts_with("tensorflow.")) return "tensorflow:";
  if (module.starts_with("jax.") || module.starts_with("jaxlib.")) return "jax:";
  return {};
}

/// Of the device that the message is about: the kind is told, its number only sometimes. What the
/// host refused is of the framework that raised; where that has no device, or none is known, of
/// PyTorch's, else of any.
void take_live_memory(const nlohmann::json& live, std::string_view backend,
                      std::optional<uint64_t> number,
                      std::string_view framework, RefusedRequest* refused) {
  const std::string exact =
      number ? std::string(backend) + ':' + std::to_string(*number) : std::string(backend);
  const nlohmann::json* devices = list_field(live, "devices");
  if (!devices) return;
  const auto is_named = [&](std::string_view name) {
    return name == exact || (!number && name.starts_with(backend));
  };
  const auto is_host_of_framework = [](std::string_view name) {
    return std::ranges::find(kHostOfFrameworks, name) != kHostOfFrameworks.end();
  };
  const auto is_of_raiser = [&](std::string_view name) {
    return !framework.empty() && name.starts_with(framework) && is_host_of_framework(name);
  };
  const auto has = [&](const auto& is_it) {
    return std::ranges::any_of(
        *devices, [&](const nlohmann::json& device) { return is_it(text_field(device, "device")); });
  };
  const bool is_host = backend == "cpu" && !number;
  const bool is_by_raiser = is_host && has(is_of_raiser);
  const bool is_by_any = is_host && !is_by_raiser && !has(is_named);
  for (const nlohmann::json& device : *devices) {
    const std::string name = text_field(device, "device");
    const bool fits = is_by_raiser ? is_of_raiser(name)
                      : is_by_any  ? is_host_of_framework(name)
                                   : is_named(name);
    const auto bytes = number_field(device, "live_bytes");
    if (!fits || !bytes || (refused->live_bytes && *bytes <= *refused->live_bytes)) continue;
    refused->device = name, refused->live_bytes = bytes;
    refused->holders.clear();
    const nlohmann::json* holders = list_field(device, "holders");
    for (size_t i = 0; holders && i < std::min(holders->size(), kMostHolders); ++i) {
      const nlohmann::json& one = (*holders)[i];
      refused->holders.push_back({.bytes = number_field(one, "bytes").value_or(0),
                                  .count = number_field(one, "count").value_or(0),
                                  .stack = texts_field(one, "stack", kMostFrames)});
    }
  }
}

std::string failure_of(const ProgramEnds& ends) {
  if (!ends.refused.empty()) return "the program ran out of memory";
  for (const ProgramEnd& run : ends.runs) {
    // Whoever presses Ctrl-C has seen enough; the program did not die.
    if (was_killed_by_the_kernel(run))
      return "the kernel's OOM killer ended the program";
    if (!run.signal.empty() && run.signal != "SIGINT") return run.signal + " ended the program";
    if (run.exit_code.value_or(0) != 0 && !ends.uncaught.empty())
      return ends.uncaught.front().kind + " ended the program";
    if (run.exit_code.value_or(0) != 0)
      return "the program ended with exit code " + std::to_string(*run.exit_code);
  }
  return {};
}

}  // namespace

bool is_host_refusal(const RefusedRequest& refused) {
  return refused.device == "cpu" ||
         std::ranges::find(kHostOfFrameworks, refused.device) != kHostOfFrameworks.end();
}

bool is_same_memory(const RefusedRequest& refused, const Device& device) {
  const std::string name = device_name(device);
  if (refused.device_number)
    return name == refused.device ||
           name == refused.device + ':' + std::to_string(*refused.device_number);
  return name == refused.device || name.starts_with(refused.device + ':');
}

bool is_of(const RefusedRequest& refused, const Device& device,
           const std::vector<Process>& processes) {
  if (device.process >= processes.size()) return false;
  const NamedProcess& by = refused.process;
  return (by.pid == 0 || by.is(processes[device.process])) && is_same_memory(refused, device);
}

bool gave_up_after(uint64_t refusal_event, uint64_t last_alloc_event, uint32_t process,
                   const ProgramEnds& ends, const std::vector<Process>& processes) {
  if (refusal_event < last_alloc_event || !ends.refused.empty() || process >= processes.size())
    return false;
  return std::ranges::any_of(ends.runs, [&](const ProgramEnd& run) {
    const Process& own = processes[process];
    const bool is_its_own = processes.size() == 1 || run.pid == own.pid;
    if (is_its_own && run.exit_code.value_or(0) != 0) return true;
    return std::ranges::any_of(run.exits, [&](const ProcessExit& one) {
      return one.pid == own.pid && one.exit_code.value_or(0) != 0 &&
             (one.start_ticks == 0 || one.start_ticks == own.start_ticks);
    });
  });
}

bool ended_for_want_of(const Device& device, const ProgramEnds& ends,
                       const std::vector<Process>& processes) {
  if (is_host_memory(device) && std::ranges::any_of(ends.runs, was_killed_by_the_kernel))
    return true;
  return std::ranges::any_of(ends.refused, [&](const RefusedRequest& refused) {
    return is_of(refused, device, processes);
  });
}

bool was_killed_by_the_kernel(const ProgramEnd& run) {
  return run.signal == "SIGKILL" && run.kernel_kills.value_or(0) != 0 && run.kills_are_of_cgroup;
}

void take_names_away(ProgramEnds* ends) {
  for (ProgramEnd& run : ends->runs) {
    run.command.clear(), run.host.clear();
    for (LeftFile& file : run.left_in_shm) file.name.clear();
  }
  for (RefusedRequest& refused : ends->refused) {
    refused.process.host.clear();
    refused.folder.clear(), refused.message.clear(), refused.stack.clear();
    for (HolderAtRefusal& holder : refused.holders) holder.stack.clear();
  }
  for (UncaughtError& error : ends->uncaught)
    error.process.host.clear(), error.kind = "an exception", error.message.clear(), error.stack.clear();
  find_failure(ends);
}

Result<UncaughtError> read_uncaught_error(const std::string& path) {
  auto text = read_small_file(path, kMostBytes);
  if (!text) return std::unexpected(text.error());
  const nlohmann::json error = nlohmann::json::parse(*text, nullptr, false);
  if (!error.is_object() || text_field(error, "kind").empty())
    return fail(ErrorCode::kBadInput, path + ": is not the note of an exception");
  return UncaughtError{.process = process_in(error),
                       .time_ns = number_field(error, "time_ns").value_or(0),
                       .rank = std::nullopt,
                       .kind = text_field(error, "kind"),
                       .message = text_field(error, "message"),
                       .stack = texts_field(error, "stack", kMostFrames)};
}

const char* run_state_name(RunState state) {
  switch (state) {
    case RunState::kEnded:
      return "ended";
    case RunState::kRunning:
      return "running";
    case RunState::kGone:
    case RunState::kElsewhere:
      return "unknown";
  }
  return "";
}

void find_failure(ProgramEnds* ends) {
  std::ranges::stable_sort(ends->uncaught, {}, &UncaughtError::time_ns);
  ends->failure = failure_of(*ends);
}

Result<RefusedRequest> read_oom_dump(const std::string& folder) {
  const std::string path = folder + "/metadata.json";
  auto text = read_small_file(path, kMostBytes);
  if (!text) return std::unexpected(text.error());
  const nlohmann::json metadata = nlohmann::json::parse(*text, nullptr, false);
  if (!metadata.is_object()) return fail(ErrorCode::kBadInput, path + ": is not a JSON object");
  RefusedRequest refused = {.folder = folder,
                            .message = text_field(metadata, "exception_message"),
                            .device = text_field(metadata, "backend"),
                            .stack = texts_field(metadata, "stack", kMostFrames)};
  refused.process = process_in(read_json_object(folder + "/environment.json", kMostBytes));
  const nlohmann::json host = read_json_object(folder + "/host.json", kMostBytes);
  refused.address_space_bytes = number_field(host, "address_space_bytes");
  refused.address_space_peak_bytes = number_field(host, "address_space_peak_bytes");
  refused.address_space_limit_bytes = number_field(host, "address_space_limit_bytes");
  refused.host_free_bytes = number_field(host, "free_bytes");
  OomScanner scanner;
  scanner.feed(refused.message);
  const OomLog log = scanner.finish();
  if (!log.messages.empty()) {
    const OomMessage& message = log.messages[0];
    refused.device_number = message.device;
    refused.requested = message.requested, refused.allowed = message.allowed;
    // With private pools it has what they keep as well.
    if (!message.private_pools) refused.allocated = message.allocated;
  }
  const std::optional<uint64_t> number = refused.device_number;
  const std::string backend = refused.device;
  if (number) {
    const nlohmann::json limits = read_json_object(folder + "/allocator_limits.json", kMostBytes);
    const nlohmann::json* of_device =
        field_of(limits, (backend + ':' + std::to_string(*number)).c_str());
    if (of_device) refused.limit_bytes = number_field(*of_device, "limit_bytes");
  }
  if (auto there = raised_again(refused.message)) {
    refused.raised_again_in = std::move(there->where), refused.stack = std::move(there->stack);
    refused.message = std::move(there->message);
  }
  take_live_memory(read_json_object(folder + "/live_memory.json", kMostBytes), backend, number,
                   framework_of(text_field(metadata, "exception_module")), &refused);
  return refused;
}

std::optional<uint64_t> mappable_bytes(const RefusedRequest& refused) {
  const auto &limit = refused.address_space_limit_bytes, &mapped = refused.address_space_bytes;
  return limit && mapped && *mapped <= *limit ? std::optional(*limit - *mapped) : std::nullopt;
}

std::optional<uint64_t> left_bytes(const RefusedRequest& refused) {
  if (!is_host_refusal(refused) || !refused.requested) return std::nullopt;
  for (const std::optional<uint64_t>& left : {mappable_bytes(refused), refused.host_free_bytes})
    if (left && *left < refused.requested->least_bytes) return left;
  return std::nullopt;
}

std::optional<ReserveLimit> reserve_limit(const RefusedRequest& refused) {
  const auto& exact = refused.limit_bytes;
  if (exact) return ReserveLimit{*exact, *exact, *exact};
  if (!refused.allowed) return std::nullopt;
  return ReserveLimit{refused.allowed->bytes, refused.allowed->least_bytes,
                      refused.allowed->most_bytes};
}

ProgramEnds read_program_ends(const std::vector<std::string>& paths) {
  ProgramEnds ends;
  for (const std::string& path : paths) {
    if (!is_folder(path)) continue;
    const size_t first_run = ends.runs.size();
    for (const std::string& name : names_with("meta.", path, kMostFiles)) {
      if (!name.ends_with(".json")) continue;
      if (auto run = run_of(read_json_object(path + '/' + name, kMostBytes)))
        ends.runs.push_back(std::move(*run));
    }
    const std::vector<FileWriter> writers = writers_in(path);
    const bool is_only_run = ends.runs.size() - first_run == 1;
    for (ProgramEnd& run : ends.runs | std::views::drop(first_run)) {
      if (run.state != RunState::kEnded) run.state = state_of(run, is_only_run, writers);
    }
    for (const FileWriter& writer : writers) {
      // One that another program replaced (exec) has two files.
      const bool is_known =
          std::ranges::find(ends.running_pids, writer.pid) != ends.running_pids.end();
      if (!writer.is_run && writer.state == WriterState::kAlive && !is_known)
        ends.running_pids.push_back(writer.pid);
    }
    for (const std::string& name : names_with("uncaught.", path, kMostFiles)) {
      if (auto one = read_uncaught_error(path + '/' + name))
        ends.uncaught.push_back(std::move(*one));
    }
    const std::string dumps = path + "/oom_dumps";
    for (const std::string& name : names_with("oom_dump_", dumps, kMostDumps)) {
      if (auto one = read_oom_dump(dumps + '/' + name)) ends.refused.push_back(std::move(*one));
    }
  }
  find_failure(&ends);
  return ends;
}

}  // namespace gpumemprof
