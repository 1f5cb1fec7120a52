#include "allocator/process_room.h"

#include <algorithm>

#include "allocator/replay.h"

namespace gpumemprof {
namespace {

/// As the allocator computes it.
uint64_t share_of(uint64_t device_bytes, double share) {
  return static_cast<uint64_t>(std::min(share * static_cast<double>(device_bytes), 0x1p60));
}

struct KnownLimit {
  ReserveLimit limit;
  bool is_by_settings = false;
};

/// What is known of the process's own limit, whether it mattered or not.
std::optional<KnownLimit> known_limit(const AllocatorTrace& trace, const AllocatorConfig& config) {
  std::optional<KnownLimit> by_settings;
  if (config.memory_fraction && trace.device_bytes != 0) {
    const uint64_t bytes = share_of(trace.device_bytes, *config.memory_fraction);
    by_settings = {{bytes, bytes, bytes}, true};
  }
  const std::optional<ReserveLimit>& told = trace.reserve_limit;
  if (!told) return by_settings;
  const bool is_same = by_settings && by_settings->limit.bytes >= told->least_bytes &&
                       by_settings->limit.bytes <= told->most_bytes;
  return is_same ? by_settings : KnownLimit{*told};
}

}  // namespace

const char* room_basis_name(RoomBasis basis) {
  switch (basis) {
    case RoomBasis::kDevice:
      return "device";
    case RoomBasis::kLimit:
      return "limit";
    case RoomBasis::kRounded:
      return "rounded_limit";
    case RoomBasis::kRefusals:
      return "refusal";
  }
  return "unknown";
}

uint64_t new_memory_needed(uint64_t asked_bytes, const AllocatorConfig& config) {
  if (!config.expandable_segments) return segment_size(asked_bytes, config);
  const uint64_t page = asked_bytes > kMiB ? config.large_segment_bytes : 2 * kMiB;
  return asked_bytes > kUnlimited - page ? kUnlimited : (asked_bytes + page - 1) / page * page;
}

ProcessRoom room_at_refusal(const AllocatorTrace& trace, uint64_t index,
                            const Simulator& simulator) {
  const AllocatorEvent event = trace.events[index];
  const AllocatorConfig& config = simulator.config();
  const Gauge& reserved = simulator.statistics().reserved;
  const uint64_t device_free = event.address;
  const uint64_t device =
      reserved.current + std::min(device_free, kUnlimited - reserved.current);
  const ProcessRoom all{device, device, device, RoomBasis::kDevice, false};
  if (const std::optional<KnownLimit> known = known_limit(trace, config)) {
    const ReserveLimit& limit = known->limit;
    if (limit.bytes >= device) return all;
    // What it had reserved was within the limit, if that was the same then.
    const uint64_t least = std::min(std::max(limit.least_bytes, reserved.peak), limit.most_bytes);
    return {.bytes = std::max({limit.bytes, least, reserved.current}),
            .least_bytes = std::max(least, reserved.current),
            .most_bytes = std::max(limit.most_bytes, reserved.current),
            .basis = limit.is_exact() ? RoomBasis::kLimit : RoomBasis::kRounded,
            .is_by_settings = known->is_by_settings};
  }
  // An expandable segment can run out of addresses as well.
  if (config.expandable_segments || device_free < new_memory_needed(event.size_bytes, config))
    return all;
  const uint64_t refused =
      reserved.current +
      std::min(segment_size(event.size_bytes, config), kUnlimited - reserved.current);
  if (reserved.peak >= refused) return all;
  return {reserved.peak, reserved.peak, refused - 1, RoomBasis::kRefusals, false};
}

std::optional<ProcessRoom> room_at_first_refusal(const AllocatorTrace& trace,
                                                 const RecordedSettings& settings,
                                                 const Release& release) {
  std::optional<ProcessRoom> room;
  if (trace.events.count(Action::kOom) == 0) return std::nullopt;
  replay_recorded(trace, settings, release, [&](uint64_t event, const Simulator& simulator) {
    if (event == kBeforeFirstEvent || trace.events[event].action != Action::kOom) return true;
    room = room_at_refusal(trace, event, simulator);
    return false;
  });
  return room;
}

void take_room(const ProcessRoom& room, uint64_t device_bytes, AllocatorConfig* config) {
  config->capacity_bytes = room.bytes;
  if (!room.is_own_limit()) return;
  if (room.is_by_settings && config->memory_fraction && device_bytes != 0)
    config->capacity_bytes = share_of(device_bytes, *config->memory_fraction);
  config->memory_fraction = 1;
}

}  // namespace gpumemprof
