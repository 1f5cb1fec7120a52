// whatif: the reserved bytes of other settings for the same requests, over the recorded events.
#include <algorithm>

#include "allocator/config.h"
#include "allocator/process_room.h"
#include "allocator/replay.h"
#include "analysis/replay/settings_study.h"
#include "analysis/replay/settings_text.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "page/answers.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// The settings that have controls; any other may be typed.
Json settings_json() {
  return {{{"name", "expandable_segments"},
           {"text", "Segments grow in place"},
           {"choices", {"False", "True"}}},
          {{"name", "max_split_size_mb"}, {"text", "Largest block to split, in MiB"}},
          {{"name", "garbage_collection_threshold"},
           {"text", "Device share above which free blocks are released"}},
          {{"name", "roundup_power2_divisions"}, {"text", "Divisions of each power of two"}}};
}

/// The trace of a device, if its allocator was recorded.
const AllocatorTrace* trace_of(const AllocatorSnapshot& history, const Tables& tables,
                               const PageDevice& device, bool is_snapshot) {
  if (is_snapshot)
    return device.index < history.traces.size() ? &history.traces[device.index] : nullptr;
  const Device& wanted = tables.devices[device.index];
  for (size_t i = 0; i < history.traces.size(); ++i) {
    if (history.tables.devices[i].type == wanted.type &&
        history.tables.devices[i].index == wanted.index)
      return &history.traces[i];
  }
  return nullptr;
}

PageAnswer unknown_answer(std::string why) {
  return columns_answer(
      Columns().finish({{"unknown", std::move(why)}, {"settings", settings_json()}}));
}

/// The reserved bytes after every event, as they change.
struct Curve {
  SparseSeries reserved;
  std::vector<uint32_t> refused;
  WhatIfResult result;
};

Curve simulate(const AllocatorTrace& trace, const AllocatorConfig& config, const Release& release) {
  Curve curve;
  uint64_t refused = 0;
  curve.result = what_if(trace, config, release, [&](uint64_t event, const Simulator& simulator) {
    const uint32_t moment = event == kBeforeFirstEvent ? 0 : static_cast<uint32_t>(event + 1);
    const AllocatorStatistics& now = simulator.statistics();
    curve.reserved.add(moment, now.reserved.current);
    if (now.num_ooms > refused) curve.refused.push_back(moment);
    refused = now.num_ooms;
    return true;
  });
  return curve;
}

}  // namespace

PageAnswer whatif_answer(PageRequest& request) {
  const size_t index = request.device();
  const PageRequest::Window window = request.window();
  const uint32_t columns = request.columns();
  const std::string settings = request.text("settings"), capacity = request.text("capacity");
  std::optional<uint64_t> capacity_bytes;
  if (!capacity.empty() && capacity != "none") {
    const auto size = parse_capacity(capacity);
    if (!size) request.refuse(size.error().message);
    if (size) capacity_bytes = *size;
  }
  if (request.is_refused()) return request.refusal();
  const PageDevice& device = request.file().devices()[index];
  const auto read = request.file().whole();
  if (!read) return error_answer(404, read.error().message);
  WholeRun& whole = **read;
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(device.index));
  const SnapshotDevice* told = known ? known->snapshot.get() : nullptr;
  if (told == nullptr || !told->is_replayed)
    return unknown_answer("the allocator was not recorded, so it cannot be simulated");
  if (told->replay.alloc_addresses == 0)
    return unknown_answer("no allocation was recorded, so there is nothing to replay");
  if (told->replay.share_matched() < kLeastFidelity)
    return unknown_answer(
        "the replay of the recorded settings is not faithful enough to predict others");
  const auto history = whole.history();
  if (!history) return unknown_answer(history.error().message);
  const AllocatorTrace* trace =
      trace_of(**history, whole.tables(), device, whole.is_snapshot());
  if (trace == nullptr || trace->events.size() + 1 != device.table->moments())
    return unknown_answer("the allocator's history does not match these events");
  const Release& release = told->replay.release;
  AllocatorConfig config = recorded_config((*history)->settings, release);
  if (request.has("settings")) {
    auto parsed = parse_settings(settings, release);
    if (!parsed) return error_answer(400, parsed.error().message);
    config = std::move(*parsed);
  }
  // Like `whatif`: what the process had of the device, if a refused request reveals it.
  std::optional<ProcessRoom> room;
  if (capacity.empty() && !device.table->refused.empty())
    room = room_at_first_refusal(*trace, (*history)->settings, release);
  config.capacity_bytes = capacity_bytes;
  if (room) take_room(*room, trace->device_bytes, &config);
  capacity_bytes = config.capacity_bytes;
  const Curve curve = simulate(*trace, config, release);
  if (curve.result.gave_up_at)
    return unknown_answer("simulating these settings takes more steps than any real trace");
  const BlockTable& table = *device.table;
  std::vector<uint32_t> begin, event;
  std::vector<uint64_t> reserved, recorded;
  const uint64_t moments = window.to - window.from;
  const uint64_t count = std::min<uint64_t>(columns, moments);
  size_t next = static_cast<size_t>(std::ranges::upper_bound(curve.reserved.moments, window.from) -
                                    curve.reserved.moments.begin());
  for (uint64_t i = 0; i < count; ++i) {
    const auto from = static_cast<uint32_t>(window.from + moments * i / count);
    const auto to = static_cast<uint32_t>(window.from + moments * (i + 1) / count);
    // The column's highest moment: its begin, or where the curve rises within it.
    uint32_t most_at = from;
    uint64_t most = curve.reserved.at(from);
    for (; next < curve.reserved.moments.size() && curve.reserved.moments[next] < to; ++next) {
      if (curve.reserved.values[next] > most)
        most = curve.reserved.values[next], most_at = curve.reserved.moments[next];
    }
    begin.push_back(from), event.push_back(most_at), reserved.push_back(most);
    if (!table.reserved.empty()) recorded.push_back(table.reserved.at(most_at));
  }
  begin.push_back(window.to);
  Columns out;
  out.add("begin", begin), out.add("event", event), out.add("reserved", reserved);
  if (!recorded.empty()) out.add("recorded", recorded);
  Json refused = Json::array();
  constexpr size_t kMostRefused = 1000;
  for (size_t i = 0; i < std::min(kMostRefused, curve.refused.size()); ++i) {
    const uint32_t moment = curve.refused[i];
    const bool is_event = moment != 0;
    refused.push_back(
        {{"event", moment},
         {"requested_bytes", is_event ? Json(trace->events[moment - 1].size_bytes) : Json()}});
  }
  uint64_t recorded_peak = 0;
  for (const uint64_t bytes : table.reserved.values) recorded_peak = std::max(recorded_peak, bytes);
  return columns_answer(
      out.finish({{"from", window.from},
                  {"to", window.to},
                  {"settings", settings_json()},
                  {"capacity_bytes", capacity_bytes ? Json(*capacity_bytes) : Json()},
                  {"recorded_settings", recorded_text((*history)->settings)},
                  {"peak_bytes", curve.result.peak_reserved_bytes},
                  {"recorded_peak_bytes", table.reserved.empty() ? Json() : Json(recorded_peak)},
                  {"refused", std::move(refused)},
                  {"refused_count", curve.result.num_ooms},
                  {"retries", curve.result.num_alloc_retries},
                  {"without_effect", config.keys_without_effect}}));
}

}  // namespace gpumemprof
