#include "report/json/sections.h"

#include <algorithm>

#include "report/json/parts.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPinning = 20;

Json figures_json(const MemoryFigures& figures) {
  return {{"requested_bytes", figures.requested_bytes},
          {"allocated_bytes", figures.allocated_bytes},
          {"active_bytes", figures.active_bytes},
          {"reserved_bytes", figures.reserved_bytes}};
}

Json holder_json(const Holder& holder, const Tables& tables) {
  const uint32_t node = headline_node(tables, holder.stack);
  return {{"bytes", holder.bytes},
          {"count", holder.count},
          {"category", nullptr},
          {"line", node == 0 ? Json(nullptr) : Json(frame_text(tables, node))},
          {"stack", stack_json(tables, holder.stack)}};
}

Json fragmentation_json(const AllocatorMoment& moment, const Tables& tables) {
  Json pinning = Json::array();
  for (size_t i = 0; i < std::min(kMostPinning, moment.pinning.size()); ++i) {
    const PinningStack& by = moment.pinning[i];
    pinning.push_back({{"pinned_bytes", by.pinned_bytes},
                       {"alone_bytes", by.alone_bytes},
                       {"live_bytes", by.live_bytes},
                       {"blocks", by.blocks},
                       {"segments", by.segments},
                       {"stack", stack_json(tables, by.stack)}});
  }
  Json sizes = Json::array();
  for (size_t i = 0; i < moment.free.blocks_by_log2.size(); ++i) {
    if (moment.free.blocks_by_log2[i] == 0) continue;
    sizes.push_back({{"at_least_bytes", uint64_t{1} << i},
                     {"blocks", moment.free.blocks_by_log2[i]},
                     {"bytes", moment.free.bytes_by_log2[i]}});
  }
  return {{"event_index", or_null(moment.event)},
          {"pinned_bytes", moment.pinned_bytes},
          {"pinned_segments", moment.pinned_segments},
          {"cached_bytes", moment.figures.releasable_bytes},
          {"largest_free_block_bytes", moment.free.largest_bytes},
          {"free_blocks", sizes},
          {"pinned_by", pinning}};
}

Json trials_json(const OomExplanation& oom) {
  Json trials = Json::array();
  for (const OomTrial& trial : oom.trials) {
    trials.push_back({{"settings", trial.settings},
                      {"fits", trial.fits},
                      {"fails_at_event", or_null(trial.fails_at_event)},
                      {"peak_reserved_bytes", trial.peak_reserved_bytes}});
  }
  return trials;
}

Json oom_json(const OomExplanation& oom, bool is_consistent, const Tables& tables) {
  Json out = {{"event_index", oom.event},
              {"time_us", or_null(oom.time_us)},
              {"asked_bytes", oom.asked_bytes},
              {"device_free_bytes", oom.device_free_bytes},
              {"went_on", oom.went_on},
              {"stack", stack_json(tables, oom.stack)}};
  Json unknown = Json::object();
  out["held_by_others_bytes"] = or_null(oom.held_by_others_bytes);
  if (!oom.held_by_others_bytes) {
    unknown["held_by_others_bytes"] =
        "a snapshot has no device size, only what this process had and what was free";
  }
  if (!is_consistent) {
    unknown["cause"] = "the events and the segments contradict each other";
    out["cause"] = nullptr;
    out["unknown"] = unknown;
    return out;
  }
  out.update(figures_json(oom.moment.figures));
  out["device_bytes"] = oom.room.bytes;
  out["available"] = room_json(oom.room);
  out["free_inside_bytes"] = oom.free_inside_bytes;
  out["free_for_request_bytes"] = oom.obstacle.free_bytes;
  out["largest_free_block_bytes"] = oom.obstacle.largest_usable_bytes;
  out["cause"] = oom_cause_name(oom.cause);
  if (const auto& other = oom.other_cache) {
    out["other_cache"] = {{"place", other->place},
                          {"stream", other->stream},
                          {"pool_id", {other->pool.first, other->pool.second}},
                          {"piece_bytes", other->piece_bytes},
                          {"segment_address", other->segment.address}};
  }
  out["missing_bytes"] = oom.missing_bytes;
  out["largest_fit_bytes"] = or_null(oom.largest_fit_bytes);
  if (!oom.largest_fit_bytes)
    unknown["largest_fit_bytes"] = "with expandable segments it depends on which pages are mapped";
  const bool is_bounded = oom.room.basis == RoomBasis::kRefusals;
  constexpr const char* kNoLimit = "the process's own limit is not known to the byte";
  if (is_bounded) unknown["largest_fit_bytes"] = kNoLimit;
  out["more_bytes_needed"] = or_null(oom.more_bytes_needed);
  if (!oom.more_bytes_needed) {
    unknown["more_bytes_needed"] =
        !oom.is_reproduced ? oom.not_reproduced
        : is_bounded       ? kNoLimit
                           : "no additional amount up to the requested size was enough";
  }
  out["is_reproduced"] = oom.is_reproduced;
  out["trials"] = trials_json(oom);
  const OomTrial* best = best_trial(oom);
  out["smallest_change"] = best ? Json(best->settings) : Json(nullptr);
  if (!best)
    unknown["smallest_change"] =
        oom.is_reproduced ? "no simulated setting would have fitted" : oom.not_reproduced;
  Json holders = Json::array();
  for (const Holder& holder : oom.moment.holders) holders.push_back(holder_json(holder, tables));
  out["holders"] = holders;
  out["fragmentation"] = fragmentation_json(oom.moment, tables);
  out["unknown"] = unknown;
  return out;
}

void add_snapshot_peaks(const DeviceAnalysis& device, const Analysis& analysis, Json* out,
                        Json* unknown) {
  const SnapshotDevice& snapshot = *device.snapshot;
  const ReplayResult& replay = snapshot.replay;
  const bool sure = snapshot.is_consistent;
  const bool can_look = sure && snapshot.at_peak;
  const bool has_time = snapshot.peak_time_us.has_value();
  const uint64_t time_ns = device.figures.peak_time_ns;
  const uint64_t start = std::min(analysis.start_time_ns, time_ns);
  (*out)["peak"] = {{"basis", "requested"},
                    {"requested_bytes", device.figures.peak_bytes},
                    {"allocated_bytes",
                     can_look ? Json(snapshot.at_peak->figures.allocated_bytes) : Json(nullptr)},
                    {"exact", is_exact(analysis, device)},
                    {"upper_bound_bytes", or_null(device.most_held_bytes)},
                    {"blocks", device.figures.peak_count},
                    {"event_index", or_null(snapshot.peak_event)},
                    {"time_us", or_null(snapshot.peak_time_us)},
                    {"time_ns", has_time ? Json(time_ns) : Json(nullptr)},
                    {"seconds_after_start",
                     has_time ? Json(static_cast<double>(time_ns - start) * 1e-9) : Json(nullptr)},
                    {"reserved_bytes",
                     can_look ? Json(snapshot.at_peak->figures.reserved_bytes) : Json(nullptr)}};
  (*out)["peak_allocated"] = {
      {"allocated_bytes", sure ? Json(replay.peak_allocated.bytes) : Json(nullptr)},
      {"event_index", sure ? or_null(replay.peak_allocated.event) : Json(nullptr)},
      {"time_us", sure ? or_null(snapshot.peak_allocated_time_us) : Json(nullptr)}};
  (*out)["peak_reserved"] = {
      {"reserved_bytes", sure ? Json(replay.peak_reserved.bytes) : Json(nullptr)},
      {"event_index", sure ? or_null(replay.peak_reserved.event) : Json(nullptr)},
      {"time_us", sure ? or_null(snapshot.peak_reserved_time_us) : Json(nullptr)}};
  const auto explain = [&](const char* key, const std::string& why) {
    for (const char* object : {"peak", "peak_allocated", "peak_reserved"}) {
      const auto found = (*out)[object].find(key);
      if (found != (*out)[object].end() && found->is_null()) (*unknown)[key] = why;
    }
  };
  const std::string why_no_bytes =
      sure ? "the peak was before the first event; the file does not say what was reserved then"
           : snapshot.contradiction;
  explain("allocated_bytes", why_no_bytes);
  explain("reserved_bytes", why_no_bytes);
  explain("event_index", !sure ? snapshot.contradiction
                         : snapshot.has_history
                             ? "the peak was before the first event"
                             : "no history was recorded: the peak is the state at the end");
  const std::string why_no_time =
      !snapshot.has_times ? "PyTorch before 2.2 and snapshots without history have no times"
      : sure              ? "the peak was before the first event"
                          : snapshot.contradiction;
  for (const char* key : {"time_us", "time_ns", "seconds_after_start"}) explain(key, why_no_time);
  explain("upper_bound_bytes", "a snapshot does not say which thread did what");
}

}  // namespace

void add_snapshot_json(const DeviceAnalysis& device, const Analysis& analysis, const Tables& tables,
                       Json* out, Json* unknown) {
  const SnapshotDevice& snapshot = *device.snapshot;
  add_snapshot_peaks(device, analysis, out, unknown);
  (*out)["end"] = {{"requested_bytes", snapshot.end.requested_bytes},
                   {"allocated_bytes", snapshot.end.allocated_bytes},
                   {"active_bytes", snapshot.end.active_bytes},
                   {"reserved_bytes", snapshot.end.reserved_bytes},
                   {"segments", snapshot.end.segments},
                   {"blocks", snapshot.end.blocks},
                   {"private_pool_bytes", snapshot.end.private_pool_bytes}};
  (*out)["live_before"] = {{"requested_bytes", snapshot.live_before_bytes},
                           {"blocks", snapshot.live_before_count}};
  const ReplayResult& replay = snapshot.replay;
  (*out)["replay"] = {{"alloc_addresses", replay.alloc_addresses},
                      {"matched", replay.matched},
                      {"first_mismatch_event", or_null(replay.first_mismatch_event)},
                      {"segment_events", replay.segment_events},
                      {"segment_events_matched", replay.segment_events_matched},
                      {"impossible_events", replay.impossible_events},
                      {"end_blocks", replay.end_blocks},
                      {"end_blocks_matched", replay.end_blocks_matched}};
  (*out)["allocator"] = {
      {"torch", release_name(replay.release)},
      {"torch_was_searched", replay.release_was_searched},
      {"settings", snapshot.settings_known ? Json(snapshot.recorded_settings) : Json(nullptr)},
      {"is_consistent", snapshot.is_consistent},
      {"contradiction", snapshot.is_consistent ? Json(nullptr) : Json(snapshot.contradiction)},
      {"mismatch", text_or_null(replay.mismatch_reason)}};
  if (!replay.first_mismatch_event)
    (*unknown)["first_mismatch_event"] = "every allocation has its recorded address";
  if (!snapshot.settings_known)
    (*unknown)["settings"] = "PyTorch before 2.5 does not write them; its defaults are assumed";
  if (snapshot.is_consistent) (*unknown)["contradiction"] = "there is none";
  if (replay.mismatch_reason.empty()) (*unknown)["mismatch"] = "there is none";
  const bool can_look = snapshot.is_consistent && snapshot.at_peak;
  (*out)["fragmentation_at_peak"] =
      can_look ? fragmentation_json(*snapshot.at_peak, tables) : Json(nullptr);
  if (!can_look) (*unknown)["fragmentation_at_peak"] = snapshot.contradiction;
  (*out)["retries"] = {{"count", snapshot.retries.count},
                       {"first_event_index", snapshot.retries.count == 0
                                                 ? Json(nullptr)
                                                 : Json(snapshot.retries.first_event)},
                       {"released_bytes", snapshot.retries.released_bytes}};
  if (snapshot.retries.count == 0)
    (*unknown)["first_event_index"] = "the trace shows no retry";
  const bool is_another = can_look && snapshot.at_most_reserved;
  (*out)["fragmentation_at_reserved_peak"] =
      is_another ? fragmentation_json(*snapshot.at_most_reserved, tables) : Json(nullptr);
  if (!is_another)
    (*unknown)["fragmentation_at_reserved_peak"] =
        can_look ? "it is the moment of fragmentation_at_peak" : snapshot.contradiction;
  Json ooms = Json::array();
  for (const OomExplanation& oom : snapshot.ooms)
    ooms.push_back(oom_json(oom, snapshot.is_consistent, tables));
  (*out)["oom"] = ooms;
}

void add_snapshot_timeline(const SnapshotDevice& snapshot, Json* timeline) {
  (*timeline)["axis"] = snapshot.has_times ? "time" : "events";
  if (!snapshot.is_consistent || !snapshot.has_history) return;
  (*timeline)["allocated"] = levels_json(snapshot.allocated);
  (*timeline)["reserved"] = levels_json(snapshot.reserved);
}

}  // namespace gpumemprof
