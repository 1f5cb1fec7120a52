// gpumemprof diagnose: a diagnostic bundle for somebody else, without secrets.
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command_shape.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tensorflow.h"
#include "cli/watch.h"
#include "devices/accelerator_json.h"
#include "devices/accelerators.h"
#include "devices/host_memory.h"
#include "devices/oom_kills.h"
#include "devices/process_memory.h"
#include "live/alerts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kHighUtilization = 0.85;
constexpr int kExitRisk = 2;  // documented; for this command alone

struct DiagnoseArguments {
  SamplerOptions sampler;
  Pace pace{.interval_s = 0.5, .duration_s = 5};
  std::string output;
  DeviceOption device;
};

/// Inside --output where that exists; else --output itself; else a new folder here.
Result<fs::path> make_folder(const std::string& output) {
  std::error_code error;
  fs::path folder = output;
  if (output.empty() || fs::is_directory(output, error)) {
    const std::string name = std::string(tool_name()) + "-diagnose-" + time_text("%Y%m%d-%H%M%S");
    folder = fs::path(output) / name;
    for (int n = 1; fs::exists(folder, error); ++n)
      folder = fs::path(output) / (name + '-' + std::to_string(n));
  }
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    return fail(ErrorCode::kSystem,
                folder.string() + ": cannot create the folder: " + error.message());
  }
  return folder;
}

std::string pretty(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Status write_file(const fs::path& path, const Json& json) {
  std::ofstream file(path, std::ios::binary);
  file << pretty(json);
  file.close();
  if (file.fail()) return fail(ErrorCode::kSystem, path.string() + ": cannot write");
  return {};
}

Json maybe(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

/// Without the processes' command lines: a bundle is handed to others.
Json gpu_json() {
  const Accelerators all = AcceleratorReader().read(Depth::kEverything);
  if (all.devices.empty()) return {{"error", all.notes.at(0)}};
  Json devices = Json::array();
  for (const Accelerator& device : all.devices) {
    Json one = accelerator_json(device);
    if (one["processes"].is_array())
      for (Json& process : one["processes"]) process.erase("command");
    devices.push_back(std::move(one));
  }
  return {{"devices", devices}, {"notes", all.notes}};
}

Json environment_json() {
  utsname system{};
  uname(&system);
  const HostMemory host = read_host_memory();
  return {{"system",
           {{"gpumemprof", GPUMEMPROF_VERSION},
            {"platform", system.sysname},
            {"release", system.release},
            {"machine", system.machine},
            {"cpus", std::max(1u, std::thread::hardware_concurrency())},
            {"memory_total_bytes", maybe(host.total.bytes)},
            {"memory_available_bytes", maybe(host.available.bytes)},
            {"cgroup_limit_bytes", maybe(host.limit.bytes)}}},
          {"gpu", gpu_json()},
          {"fragmentation", {{"error", "the sizes of free blocks are not visible from outside"}}}};
}

/// Everything that was seen, added up over the processes at each moment.
struct Diagnosis {
  Json timestamps = Json::array(), allocated = Json::array(), reserved = Json::array();
  std::optional<uint64_t> last_allocated, last_reserved, peak, total;
  std::map<int64_t, uint64_t> totals;  // by device; -1 is the host
  double peak_share = 0;
  uint64_t ooms = 0, kernel_kills = 0;
  std::string basis, subject;
  bool accelerator = false;

  void take(const std::vector<TelemetryEvent>& events) {
    if (events.empty()) return;
    uint64_t sum = 0, sum_reserved = 0;
    const bool on_device =
        std::ranges::any_of(events, [](const auto& e) { return e.device_id >= 0; });
    for (const TelemetryEvent& event : events) {
      const Json metadata = Json::parse(event.metadata, nullptr, false);
      if (metadata.contains("oom_count"))
        ooms = std::max(ooms, metadata["oom_count"].get<uint64_t>());
      if (const auto percent = used_percent(event))
        peak_share = std::max(peak_share, *percent / 100);
      // Bytes of a device and bytes of the host are never added up: the device's are the question.
      if (on_device != (event.device_id >= 0)) continue;
      if (event.total_bytes) totals[event.device_id] = *event.total_bytes;
      sum += event.allocated_bytes.value_or(0), sum_reserved += event.reserved_bytes.value_or(0);
      basis = metadata.value("basis", "");
    }
    accelerator = on_device;
    total.reset();
    for (const auto& [device, bytes] : totals)
      if ((device >= 0) == on_device) total = total.value_or(0) + bytes;
    timestamps.push_back(static_cast<double>(events[0].timestamp_ns) * 1e-9);
    allocated.push_back(sum), reserved.push_back(sum_reserved);
    last_allocated = sum, last_reserved = sum_reserved;
    peak = std::max(peak.value_or(0), sum);
  }
  bool at_risk() const { return ooms > 0 || kernel_kills > 0 || peak_share >= kHighUtilization; }
};

Json summary_json(const Diagnosis& d) {
  Json suggestions = Json::array();
  if (d.ooms + d.kernel_kills > 0)
    suggestions.push_back(
        "Memory ran out: record the program with gpumemprof run and see what holds its peak.");
  if (d.peak_share >= kHighUtilization)
    suggestions.push_back(
        "Nearly all memory is in use. A smaller batch, mixed precision or gradient checkpointing "
        "needs less.");
  const bool measured = d.last_allocated.has_value();
  Json unknown = {{"fragmentation_ratio", "the sizes of free blocks are not visible from outside"}};
  if (!measured) unknown["allocated_bytes"] = "no sample was taken (--duration 0)";
  if (!d.total) unknown["total_bytes"] = "the total is not known";
  return {{"backend", d.accelerator ? "cuda" : "cpu"},
          {"subject", d.subject},
          {"basis", d.basis},
          {"allocated_bytes", maybe(d.last_allocated)},
          {"reserved_bytes", maybe(d.last_reserved)},
          {"peak_bytes", maybe(d.peak)},
          {"total_bytes", maybe(d.total)},
          {"utilization_ratio", measured && d.total ? Json(d.peak_share) : Json(nullptr)},
          {"fragmentation_ratio", nullptr},
          {"num_ooms", d.ooms + d.kernel_kills},
          {"risk_flags",
           {{"oom_occurred", d.ooms + d.kernel_kills > 0},
            {"high_utilization", d.peak_share >= kHighUtilization},
            {"fragmentation_warning", nullptr}}},
          {"suggestions", suggestions},
          {"unknown", unknown}};
}

Status write_bundle(const fs::path& folder, const Diagnosis& diagnosis, int exit_code) {
  const std::pair<const char*, Json> files[] = {
      {"environment.json", environment_json()},
      {"telemetry_timeline.json",
       {{"timestamps", diagnosis.timestamps},
        {"allocated", diagnosis.allocated},
        {"reserved", diagnosis.reserved}}},
      {"diagnostic_summary.json", summary_json(diagnosis)}};
  Json names = Json::array();
  for (const auto& [name, json] : files) {
    if (auto done = write_file(folder / name, json); !done) return done;
    names.push_back(name);
  }
  names.push_back("manifest.json");
  // Last, so that a bundle with a manifest is a whole one.
  return write_file(folder / "manifest.json", {{"version", 1},
                                               {"created_iso", time_text("%Y-%m-%dT%H:%M:%S%z")},
                                               {"command_line", joined(typed_words(), " ")},
                                               {"files", names},
                                               {"exit_code", exit_code},
                                               {"risk_detected", exit_code == kExitRisk}});
}

bool process_exists(int pid) { return read_process_memory("/proc", pid, false).exists; }

int failed(const Error& error) {
  const int code = report_error("", error);
  if (code == kExitToolFailed) std::printf("Status: FAILED (exit_code=%d)\n", code);
  return code;
}

int diagnose(DiagnoseArguments& arguments) {
  if (auto known = arguments.device.resolve(); !known) return failed(known.error());
  if (arguments.device.number >= 0) arguments.sampler.device = arguments.device.number;
  auto sampler = open_sampler(arguments.sampler);
  if (!sampler) return failed(sampler.error());
  auto folder = make_folder(arguments.output);
  if (!folder) return failed(folder.error());
  Diagnosis diagnosis;
  diagnosis.subject = sampler->subject();
  OomKills kills;
  if (*arguments.pace.duration_s > 0) {
    auto end = watch(*sampler, arguments.pace, [&](const std::vector<TelemetryEvent>& events) {
      diagnosis.take(events);
      return Status{};
    });
    if (!end) return failed(end.error());
  }
  // The kernel counts whom it killed and does not name them: of one process only its end is known.
  if (!arguments.sampler.pid || !process_exists(*arguments.sampler.pid))
    diagnosis.kernel_kills = kills.new_kills();
  const int exit_code = diagnosis.at_risk() ? kExitRisk : kExitOk;
  if (!arguments.device.notes.empty()) std::printf("Note: %s\n", arguments.device.notes.c_str());
  if (auto done = write_bundle(*folder, diagnosis, exit_code); !done) return failed(done.error());
  std::printf("Artifact: %s\n", printable(folder->string()).c_str());
  std::printf("Status: %s (exit_code=%d)\n", exit_code == kExitOk ? "OK" : "MEMORY_RISK",
              exit_code);
  std::string findings;
  if (diagnosis.ooms + diagnosis.kernel_kills > 0) findings = "memory ran out";
  if (diagnosis.peak_share >= kHighUtilization)
    findings += (findings.empty() ? "" : ", ") + std::string("high utilization");
  std::printf("Findings: %s\n", findings.empty() ? "none" : findings.c_str());
  return exit_code;
}

}  // namespace

void add_diagnose_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<DiagnoseArguments>();
  CLI::App* command = app.add_subcommand("diagnose", "collect a diagnostic bundle");
  add_value(command, "-o,--output", "DIR", arguments->output,
            "destination: inside this folder if it exists, else this folder");
  add_device_option(command, context, &arguments->device);
  add_pace_options(command, &arguments->pace,
                   "seconds of sampling (default: 5); 0 takes no samples");
  add_value(command, "--pid", "PID", arguments->sampler.pid, "only this process")
      ->check(CLI::PositiveNumber);
  command->footer("Exit codes: 0 no risk, 1 failed, 2 risk found.");
  command->callback([arguments, &context] { context.exit_code = diagnose(*arguments); });
}

}  // namespace gpumemprof
