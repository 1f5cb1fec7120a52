// run: the page's first request.

#include "allocator/replay.h"
#include "analysis/leaks/leak_limit.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "page/answers.h"
#include "report/json/parts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// In the order of InputKind.
constexpr const char* kInputKindNames[] = {"recording", "snapshot", "events", "dump", "samples"};

/// The device's size, if known.
Json capacity_json(WholeRun& whole, const PageDevice& device) {
  const auto& snapshot = whole.input().snapshot();
  if (snapshot && device.index < snapshot->traces.size()) {
    const uint64_t bytes = snapshot->traces[device.index].device_bytes;
    if (bytes != 0) return bytes;
  }
  const auto known =
      memory_limit(static_cast<uint16_t>(device.index), whole.tables(), std::nullopt);
  return known ? Json(*known) : Json();
}

Json device_json(const PageFile& file, WholeRun& whole, const PageDevice& device) {
  const BlockTable& table = *device.table;
  const Device& memory = file.tables().devices[device.index];
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(device.index));
  const bool is_exact = known != nullptr && gpumemprof::is_exact(whole.analysis(), *known) &&
                        table.left_out_events == 0;
  uint64_t earlier_blocks = 0;
  table.each_live(0, [&](uint32_t) { ++earlier_blocks; });
  Json unknown = Json::array();
  const auto add = [&](bool is_unknown, const char* what, const std::string& reason) {
    if (is_unknown) unknown.push_back({{"what", what}, {"reason", reason}});
  };
  add(!table.is_told, "category", device.why_no_categories);
  add(table.reserved.empty(), "reserved",
      table.has_end_segments ? "the events and the segments contradict each other"
                             : "the source has no reserved bytes");
  add(table.stream.empty(), "stream", "the source has no streams");
  add(table.thread.empty(), "thread", "the source has no threads");
  add(!device.has_times, "time", "the events have no times");
  // The highest moment was among the dropped events: no other replaces it.
  const uint64_t shown_peak = table.level_at(table.peak);
  const uint64_t whole_peak = known ? known->figures.peak_bytes : shown_peak;
  add(whole_peak != shown_peak, "peak",
      "the highest, " + format_bytes(whole_peak) + ", was before the first remaining event");
  add(!device.why_unknown_before.empty(), "before", device.why_unknown_before);
  const std::vector<Process>& processes = file.tables().processes;
  std::string label = device.name;
  if (processes.size() > 1 && memory.process < processes.size())
    label += ", " + process_label(processes[memory.process]);
  return {{"name", device.name},
          {"label", label},
          {"layer", layer_name(memory.layer)},
          {"process", memory.process < processes.size() ? Json(memory.process) : Json()},
          {"is_main", device.is_main},
          {"capacity_bytes", capacity_json(whole, device)},
          {"events", table.moments() - 1},
          {"blocks", table.blocks()},
          {"first_time_ns", time_of(file, device, 0)},
          {"last_time_ns", time_of(file, device, table.moments() - 1)},
          {"has_times", device.has_times},
          {"has_addresses", file.facts().has_addresses},
          {"exact", is_exact},
          {"left_out_events", table.left_out_events},
          {"peak",
           {{"event", table.peak},
            {"time_ns", time_of(file, device, table.peak)},
            {"bytes", shown_peak}}},
          {"whole_peak_bytes", whole_peak},
          {"base_bytes", table.earlier_bytes},
          {"base_blocks", earlier_blocks},
          {"end_bytes", table.level_at(table.moments() - 1)},
          {"unknown", std::move(unknown)}};
}

}  // namespace

Json file_json(const PageFile& file, WholeRun& whole, Json document) {
  const Analysis& analysis = whole.analysis();
  const Tables& tables = file.tables();
  Json devices = Json::array(), processes = Json::array(), threads = Json::array();
  for (const PageDevice& device : file.devices()) devices.push_back(device_json(file, whole, device));
  for (const Process& process : tables.processes) {
    processes.push_back({{"id", processes.size()},
                         {"label", process_label(process)},
                         {"pid", process.pid},
                         {"host", text_or_null(process.host)},
                         {"command", text_or_null(process.command)},
                         {"python", text_or_null(process.python_version)}});
  }
  for (const Thread& thread : tables.threads) {
    threads.push_back({{"id", threads.size()},
                       {"label", printable(thread.name) + " (" + std::to_string(thread.tid) + ")"},
                       {"process", thread.process}});
  }
  Json categories = Json::array(), unknown = Json::array(), streams = Json::array();
  for (size_t c = 0; c < kCategories; ++c)
    categories.push_back({{"id", c}, {"label", category_name(static_cast<Category>(c))}});
  for (const int64_t stream : file.facts().streams) {
    const std::string name = stream == 0 ? "default stream" : "stream " + std::to_string(stream);
    streams.push_back({{"id", streams.size()}, {"label", name}});
  }
  for (const LossReason& loss : analysis.loss.reasons) {
    unknown.push_back({{"what", loss.is_counted() ? format_plural(loss.events, "event") : "not complete"},
                       {"reason", loss.reason}});
  }
  Json out = {{"kind", kInputKindNames[static_cast<size_t>(whole.input().kind())]},
          {"source", source_kind_name(analysis.source.kind)},
          {"writer", text_or_null(analysis.source.writer_version_hint)},
          {"bytes", analysis.source.bytes},
          {"start_ns", std::to_string(file.facts().start_time_ns)},
          {"is_wall_clock", whole.is_snapshot()},
          {"unknown", std::move(unknown)},
          {"devices", std::move(devices)},
          {"processes", std::move(processes)},
          {"streams", std::move(streams)},
          {"categories", std::move(categories)},
          {"threads", std::move(threads)},
          {"findings", whole.findings()},
          {"document", std::move(document)}};
  // Without names the file's own name is replaced too.
  if (whole.input().is_anonymous()) out["name"] = printable(analysis.source.path);
  return out;
}

}  // namespace gpumemprof
