// gpumemprof info: what this machine offers and what is recorded on it now. Reads a few files of
// /proc and /sys, asks the drivers of accelerators, and starts nothing: no Python, no framework.
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/info.h"
#include "cli/options.h"
#include "cli/python_program.h"
#include "cli/tensorflow.h"
#include "devices/accelerator_json.h"
#include "devices/accelerators.h"
#include "devices/host_memory.h"
#include "devices/oom_kills.h"
#include "live/live_recordings.h"
#include "live/recording_follower.h"
#include "report/words.h"
#include "run/preload.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

struct InfoArguments {
  DeviceOption device;
  std::string program_path;
  bool detailed = false;
  std::string format = "text";
};

/// A value, or null and an entry of "unknown" that says why.
void put(Json* object, Json* unknown, const char* key, const Quantity& quantity) {
  (*object)[key] = quantity ? Json(*quantity.bytes) : Json(nullptr);
  if (!quantity) (*unknown)[key] = quantity.absent_because;
}

Json recording_json(const LiveRecording& recording, bool detailed) {
  Json out = {{"pid", recording.id.pid},
              {"command", recording.command},
              {"folder", recording.folder},
              {"devices", Json::array()}};
  if (!detailed) return out;
  auto follower = RecordingFollower::open(recording.file);
  if (!follower) return out;
  auto state = follower->look();
  if (!state) return out;
  out["events"] = state->events;
  out["exact"] = state->exact;
  for (const FollowedDevice& device : state->devices) {
    out["devices"].push_back({{"device", device.name},
                              {"live_bytes", device.live_bytes},
                              {"live_blocks", device.live_count},
                              {"peak_bytes", device.peak_bytes},
                              {"alloc_count", device.alloc_count},
                              {"free_count", device.free_count}});
  }
  return out;
}

Json system_json() {
  utsname system{};
  uname(&system);
  Json out = {{"platform", system.sysname},
              {"release", system.release},
              {"machine", system.machine},
              {"cpus", std::max(1u, std::thread::hardware_concurrency())}};
  return out;
}

/// "devices" is null where no driver shows one: whether there is a GPU is then unknown.
Json gpu_json(const InfoArguments& arguments, const Accelerators& all) {
  const int wanted = arguments.device.number;
  Json out = {{"device", wanted >= 0 ? Json(wanted) : Json(nullptr)},
              {"devices", nullptr},
              {"notes", all.notes},
              {"unknown", Json::object()}};
  if (all.devices.empty()) {
    out["unknown"]["devices"] = all.notes.at(0);
    return out;
  }
  out["devices"] = Json::array();
  for (const Accelerator& device : all.devices)
    if (wanted < 0 || device.number == wanted) out["devices"].push_back(accelerator_json(device));
  return out;
}

Json info_json(const InfoArguments& arguments, const Accelerators& all) {
  Json memory = Json::object(), unknown = Json::object();
  const HostMemory host = read_host_memory();
  put(&memory, &unknown, "total_bytes", host.total);
  put(&memory, &unknown, "available_bytes", host.available);
  put(&memory, &unknown, "used_bytes", host.used);
  put(&memory, &unknown, "cgroup_limit_bytes", host.limit);
  put(&memory, &unknown, "cgroup_used_bytes", host.limit_used);
  memory["unknown"] = unknown;
  Json recordings = Json::array();
  std::vector<LiveRecording> waiting;
  for (const LiveRecording& recording : list_live_recordings("/proc", &waiting))
    recordings.push_back(recording_json(recording, arguments.detailed));
  Json silent = Json::array();
  for (const LiveRecording& run : waiting)
    silent.push_back({{"pid", run.id.pid}, {"command", run.command}, {"folder", run.folder}});
  Json out = {{"schema", "gpumemprof.info/1"},   {"version", GPUMEMPROF_VERSION},
              {"system", system_json()},         {"memory", memory},
              {"gpu", gpu_json(arguments, all)}, {"recordings", recordings},
              {"waiting", silent}};
  const std::vector<std::string> folders = package_folders(arguments.program_path);
  out["conflicts"] = second_profilers(folders);
  if (is_tfmemprof()) out["tensorflow"] = tensorflow_json(folders);
  if (arguments.detailed) {
    auto probe = find_probe(std::getenv("GPUMEMPROF_PROBE"), own_program());
    out["probe"] = {{"path", probe ? Json(*probe) : Json(nullptr)},
                    {"reason", probe ? "" : probe.error().message}};
    const auto kills = OomKills().all();
    out["oom_kills"] = kills ? Json(*kills) : Json(nullptr);
  }
  return out;
}

std::string bytes_text(const Json& object, const char* key) {
  if (object[key].is_null()) return "unknown (" + object["unknown"][key].get<std::string>() + ')';
  return format_bytes(object[key].get<uint64_t>());
}

void print_accelerators(const Accelerators& all, int wanted, bool detailed) {
  if (all.devices.empty()) {
    std::printf("GPUs: unknown (%s)\n", printable(all.notes.at(0)).c_str());
    return;
  }
  std::printf("GPUs: %zu\n", all.devices.size());
  for (const std::string& note : all.notes) std::printf("  %s\n", printable(note).c_str());
  for (const Accelerator& device : all.devices)
    if (wanted < 0 || device.number == wanted)
      std::fputs(accelerator_text(device, detailed).c_str(), stdout);
}

void print_text(const Json& info, const Accelerators& all, int wanted, bool detailed) {
  const Json &system = info["system"], &memory = info["memory"];
  const auto text = [](const Json& value) { return printable(value.get<std::string>()); };
  std::printf("%s %s\n", tool_name(), GPUMEMPROF_VERSION);
  std::fputs(second_profiler_text(info["conflicts"]).c_str(), stdout);
  if (info.contains("tensorflow")) std::fputs(tensorflow_text(info["tensorflow"]).c_str(), stdout);
  std::printf("System: %s %s, %s, %u CPUs\n", text(system["platform"]).c_str(),
              text(system["release"]).c_str(), text(system["machine"]).c_str(),
              system["cpus"].get<unsigned>());
  std::printf("Memory: %s, available %s\n", bytes_text(memory, "total_bytes").c_str(),
              bytes_text(memory, "available_bytes").c_str());
  if (!memory["cgroup_limit_bytes"].is_null()) {
    std::printf("This container may use: %s, used %s\n",
                bytes_text(memory, "cgroup_limit_bytes").c_str(),
                bytes_text(memory, "cgroup_used_bytes").c_str());
  }
  print_accelerators(all, wanted, detailed);
  const Json& recordings = info["recordings"];
  std::printf("Your running recordings: %zu\n", recordings.size() + info["waiting"].size());
  for (const Json& recording : recordings) {
    std::printf("  pid %d: %s, into %s\n", recording["pid"].get<int>(),
                text(recording["command"]).c_str(), text(recording["folder"]).c_str());
    for (const Json& device : recording["devices"]) {
      std::printf("    %s: %s live in %s, peak %s\n", text(device["device"]).c_str(),
                  format_bytes(device["live_bytes"].get<uint64_t>()).c_str(),
                  format_plural(device["live_blocks"].get<uint64_t>(), "block").c_str(),
                  format_bytes(device["peak_bytes"].get<uint64_t>()).c_str());
    }
  }
  for (const Json& run : info["waiting"]) {
    std::printf("  pid %d: %s, into %s: %s\n", run["pid"].get<int>(), text(run["command"]).c_str(),
                text(run["folder"]).c_str(), kNoAllocationYet);
  }
  if (!detailed) return;
  const Json& probe = info["probe"];
  std::printf("Probe: %s\n", probe["path"].is_null() ? text(probe["reason"]).c_str()
                                                     : text(probe["path"]).c_str());
  std::printf("Kernel OOM kills: %s\n", info["oom_kills"].is_null()
                                            ? "unknown (no cgroup counts them)"
                                            : info["oom_kills"].dump().c_str());
}

int info(InfoArguments& arguments) {
  if (auto known = arguments.device.resolve(); !known) return report_error("", known.error());
  if (!arguments.device.notes.empty()) std::fprintf(stderr, "%s\n", arguments.device.notes.c_str());
  const Accelerators all = AcceleratorReader().read(Depth::kEverything);
  if (auto why = why_not_listed(all, arguments.device.number); !why.empty())
    return wrong_usage(why);
  const Json out = info_json(arguments, all);
  if (arguments.format == "json") {
    std::printf("%s\n", out.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print_text(out, all, arguments.device.number, arguments.detailed);
  }
  return kExitOk;
}

}  // namespace

void add_info_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<InfoArguments>();
  CLI::App* command = app.add_subcommand("info", "show this machine and the recordings on it");
  arguments->program_path = context.program_path;
  add_device_option(command, context, &arguments->device, "only this accelerator");
  command->add_flag("--detailed", arguments->detailed,
                    "also show exact counters of the recordings, the probe, and OOM kills");
  add_text_or_json_option(command, &arguments->format);
  command->callback([arguments, &context] { context.exit_code = info(*arguments); });
}

}  // namespace gpumemprof
