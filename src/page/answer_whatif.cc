// Requests that replay the allocator. whatif: the reserved bytes of other settings for the same
// requests, over the recorded events. allocator: what is free at a moment, as the report has it.
#include <algorithm>

#include "allocator/replay.h"
#include "analysis/replay/settings_study.h"
#include "analysis/replay/settings_text.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/replay/study_request.h"
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

/// The index in `history.traces` of a device, if its allocator was recorded.
std::optional<size_t> trace_of(const AllocatorSnapshot& history, const Tables& tables,
                               const PageDevice& device, bool is_snapshot) {
  const Device& wanted = tables.devices[device.index];
  for (size_t i = is_snapshot ? device.index : 0; i < history.traces.size(); ++i) {
    if (is_snapshot || (history.tables.devices[i].type == wanted.type &&
                        history.tables.devices[i].index == wanted.index))
      return i;
  }
  return std::nullopt;
}

PageAnswer unknown_answer(std::string why) {
  return columns_answer(
      Columns().finish({{"unknown", std::move(why)}, {"settings", settings_json()}}));
}

/// What is said of a row, beside its curve.
Json row_json(const StudyRow& row) {
  return {{"peak_bytes", row.result.peak_reserved_bytes},
          {"refused_count", row.result.num_ooms},
          {"fails_at_start", row.result.oom_before_first_event},
          {"retries", row.result.num_alloc_retries}};
}

/// The reserved bytes after every event, as they change, and the moments of refusals.
struct Curve {
  SparseSeries reserved;
  std::vector<uint32_t> refused;

  void see(uint64_t event, const AllocatorStatistics& now) {
    const uint32_t moment = event == kBeforeFirstEvent ? 0 : static_cast<uint32_t>(event + 1);
    reserved.add(moment, now.reserved.current);
    if (now.num_ooms > refused_before_) refused.push_back(moment);
    refused_before_ = now.num_ooms;
  }
  /// The highest moment of [from, to): `from`, or where the curve rises within, and its bytes.
  std::pair<uint32_t, uint64_t> highest(uint32_t from, uint32_t to) const {
    std::pair most(from, reserved.at(from));
    const auto& at = reserved.moments;
    for (auto next = std::ranges::upper_bound(at, from); next != at.end() && *next < to; ++next) {
      const uint64_t bytes = reserved.values[static_cast<size_t>(next - at.begin())];
      if (bytes > most.second) most = {*next, bytes};
    }
    return most;
  }

 private:
  uint64_t refused_before_ = 0;
};

/// The replayed device; null: `why` says why there is none.
const SnapshotDevice* replayed_device(WholeRun& whole, const PageDevice& device, std::string* why) {
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(device.index));
  const SnapshotDevice* told = known ? known->snapshot.get() : nullptr;
  if (told != nullptr && told->is_replayed) return told;
  *why = "the allocator was not recorded, so it cannot be simulated";
  return nullptr;
}

/// One of the traces of the allocator's history.
struct RecordedTrace {
  std::shared_ptr<const AllocatorSnapshot> history;
  size_t index = 0;
  const AllocatorTrace& trace() const { return history->traces[index]; }
};

/// The device's, whose events are those of the page.
Result<RecordedTrace> recorded_trace(WholeRun& whole, const PageDevice& device) {
  const auto history = whole.history();
  if (!history) return std::unexpected(history.error());
  const auto index = trace_of(**history, whole.tables(), device, whole.is_snapshot());
  if (!index || (*history)->traces[*index].events.size() + 1 != device.table->moments())
    return fail(ErrorCode::kBadInput, "the allocator's history does not match these events");
  return RecordedTrace{*history, *index};
}

}  // namespace

PageAnswer whatif_answer(PageRequest& request) {
  const PageDevice& device = request.file().devices()[request.device()];
  const PageRequest::Window window = request.window();
  const uint32_t columns = request.columns();
  // The command's own study: its baseline, its capacity, its figures.
  StudyRequest wanted{.capacity = request.text("capacity")};
  if (request.has("settings")) wanted.settings.push_back(request.text("settings"));
  auto options = study_options(wanted);
  if (!options) request.refuse(options.error().message);
  if (request.is_refused()) return request.refusal();
  const auto read = request.file().whole();
  if (!read) return error_answer(404, read.error().message);
  WholeRun& whole = **read;
  std::string why;
  const SnapshotDevice* told = replayed_device(whole, device, &why);
  if (told == nullptr) return unknown_answer(std::move(why));
  const ReplayLack lack = lack_of(told->replay);
  if (lack == ReplayLack::kAllocations)
    return unknown_answer("no allocation was recorded, so there is nothing to replay");
  if (lack == ReplayLack::kFidelity)
    return unknown_answer(
        "the replay of the recorded settings is not faithful enough to predict others");
  const auto recorded = recorded_trace(whole, device);
  if (!recorded) return unknown_answer(recorded.error().message);
  const AllocatorTrace& trace = recorded->trace();
  Curve curves[2];  // of the recorded settings, and of those asked for
  options->observer = [&](size_t row, uint64_t event, const Simulator& simulator) {
    curves[row].see(event, simulator.statistics());
    return true;
  };
  const auto study = study_settings(*recorded->history, recorded->index, *options);
  if (!study && study.error().code == ErrorCode::kUsage)
    return error_answer(400, study.error().message);
  if (!study) return unknown_answer(study.error().message);
  const StudyRow& row = study->rows.back();
  const Curve& curve = curves[study->rows.size() - 1];
  const BlockTable& table = *device.table;
  std::vector<uint32_t> begin, event;
  std::vector<uint64_t> reserved, baseline, was_reserved;
  const uint64_t moments = window.to - window.from;
  const uint64_t count = std::min<uint64_t>(columns, moments);
  for (uint64_t i = 0; i < count; ++i) {
    const auto from = static_cast<uint32_t>(window.from + moments * i / count);
    const auto to = static_cast<uint32_t>(window.from + moments * (i + 1) / count);
    const auto [most_at, most] = curve.highest(from, to);
    begin.push_back(from), event.push_back(most_at), reserved.push_back(most);
    baseline.push_back(curves[0].highest(from, to).second);
    if (!table.reserved.empty()) was_reserved.push_back(table.reserved.at(most_at));
  }
  begin.push_back(window.to);
  Columns out;
  out.add("begin", begin), out.add("event", event), out.add("reserved", reserved);
  out.add("baseline", baseline);
  if (!was_reserved.empty()) out.add("recorded", was_reserved);
  Json refused = Json::array();
  constexpr size_t kMostRefused = 1000;
  for (size_t i = 0; i < std::min(kMostRefused, curve.refused.size()); ++i) {
    const uint32_t moment = curve.refused[i];
    const bool is_event = moment != 0;
    refused.push_back(
        {{"event", moment},
         {"requested_bytes", is_event ? Json(trace.events[moment - 1].size_bytes) : Json()}});
  }
  Json header = {{"from", window.from},
                 {"to", window.to},
                 {"settings", settings_json()},
                 {"capacity_bytes", row.capacity_bytes ? Json(*row.capacity_bytes) : Json()},
                 {"is_recorded_capacity", study->is_in_that_room},
                 {"settings_known", study->settings_known},
                 {"recorded_settings", recorded_text(recorded->history->settings)},
                 {"baseline", row_json(study->rows.front())},
                 {"recorded_peak_bytes", study->recorded_peak_reserved_bytes
                                             ? Json(*study->recorded_peak_reserved_bytes)
                                             : Json()},
                 {"refused", std::move(refused)},
                 {"without_effect", row.keys_without_effect}};
  header.update(row_json(row));
  return columns_answer(out.finish(std::move(header)));
}

PageAnswer allocator_answer(PageRequest& request) {
  const PageDevice& device = request.file().devices()[request.device()];
  const uint32_t moment = request.moment("event", request.table().peak);
  if (request.is_refused()) return request.refusal();
  const auto read = request.file().whole();
  if (!read) return error_answer(404, read.error().message);
  WholeRun& whole = **read;
  std::string why;
  const SnapshotDevice* told = replayed_device(whole, device, &why);
  if (told == nullptr) return unknown_answer(std::move(why));
  if (!told->is_consistent) return unknown_answer(told->contradiction);
  const auto recorded = recorded_trace(whole, device);
  if (!recorded) return unknown_answer(recorded.error().message);
  const AllocatorTrace& trace = recorded->trace();
  Json header = {{"event", moment}};
  const auto see = [&](uint64_t event, const Simulator& simulator) {
    if (moment != 0 && (event == kBeforeFirstEvent || event + 1 < moment)) return true;
    const AllocatorStatistics& now = simulator.statistics();
    header["reserved_bytes"] = now.reserved.current;
    header["active_bytes"] = now.active.current;
    header["fragmented_bytes"] = now.fragmented_bytes();
    header["cached_bytes"] = now.releasable.current;
    return false;
  };
  replay_recorded(trace, trace_start(trace), recorded->history->settings, told->replay.release,
                  see);
  return columns_answer(Columns().finish(std::move(header)));
}

}  // namespace gpumemprof
