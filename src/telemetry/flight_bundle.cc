#include "telemetry/flight_bundle.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kPrefix = "oom_dump_";

std::string utc_now(const char* format) {
  const time_t now = time(nullptr);
  tm parts{};
  char text[64];
  gmtime_r(&now, &parts);
  return {text, strftime(text, sizeof text, format, &parts)};
}

bool write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return !file.fail();
}

std::string pretty(const OrderedJson& json) {
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

uint64_t folder_bytes(const fs::path& folder) {
  std::error_code error;
  uint64_t bytes = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const uint64_t size = it->file_size(error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace

void FlightBundles::record(const TelemetryEvent& event) {
  events_.push_back(event);
  if (events_.size() > options_.buffer_size) events_.pop_front();
}

Result<std::string> FlightBundles::dump(const std::string& reason, const std::string& message) {
  const auto refused = [](const fs::path& path) {
    return fail(ErrorCode::kSystem, path.string() + ": cannot write the bundle");
  };
  const bool cpu = events_.empty() || events_.back().device_id < 0;
  const std::string name = kPrefix + utc_now("%Y%m%dT%H%M%SZ") + '_' + std::to_string(getpid()) +
                           (cpu ? "_cpu_" : "_cuda_") + std::to_string(++dumps_);
  std::error_code error;
  const fs::path folder(options_.folder), made = folder / ('.' + name);
  fs::create_directories(folder, error);
  if (mkdir(made.c_str(), 0700) != 0) return refused(made);
  std::string events = "[";
  for (const TelemetryEvent& event : events_)
    events += (events.size() == 1 ? "\n" : ",\n") + telemetry_json(event);
  utsname system{};
  uname(&system);
  const OrderedJson manifest = {
      {"schema_version", 1},
      {"bundle_name", name},
      {"created_at_utc", utc_now("%Y-%m-%dT%H:%M:%SZ")},
      {"reason", reason},
      {"backend", cpu ? "cpu" : "cuda"},
      {"event_count", events_.size()},
      {"files", {"manifest.json", "events.json", "metadata.json", "environment.json"}}};
  const OrderedJson metadata = {{"reason", reason},
                                {"exception_type", nullptr},
                                {"exception_module", nullptr},
                                {"exception_message", message},
                                {"context", "gpumemprof track"},
                                {"backend", cpu ? "cpu" : "cuda"},
                                {"captured_event_count", events_.size()},
                                {"custom_metadata", OrderedJson::object()}};
  const OrderedJson environment = {
      {"pid", getpid()},
      {"system",
       {{"platform", system.sysname}, {"release", system.release}, {"machine", system.machine}}}};
  const bool written = write_file(made / "events.json", events + "\n]\n") &&
                       write_file(made / "metadata.json", pretty(metadata)) &&
                       write_file(made / "environment.json", pretty(environment)) &&
                       write_file(made / "manifest.json", pretty(manifest));
  if (written) fs::rename(made, folder / name, error);
  if (!written || error) {
    fs::remove_all(made, error);
    return refused(folder / name);
  }
  retain(name);
  return (folder / name).string();
}

void FlightBundles::retain(const std::string& newest) const {
  struct Bundle {
    fs::path path;
    fs::file_time_type time;
    uint64_t bytes;
  };
  std::vector<Bundle> bundles;
  std::error_code error;
  uint64_t total = 0;
  for (fs::directory_iterator it(options_.folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with(kPrefix)) continue;
    bundles.push_back({it->path(), it->last_write_time(error), folder_bytes(it->path())});
    total += bundles.back().bytes;
  }
  std::ranges::sort(bundles, [](const Bundle& a, const Bundle& b) {
    return a.time != b.time ? a.time < b.time : a.path < b.path;
  });
  size_t left = bundles.size();
  for (const Bundle& bundle : bundles) {
    if (left <= options_.max_dumps && total <= options_.max_total_mb << 20) return;
    if (bundle.path.filename() == newest) continue;
    fs::remove_all(bundle.path, error);
    --left, total -= bundle.bytes;
  }
}

}  // namespace gpumemprof
