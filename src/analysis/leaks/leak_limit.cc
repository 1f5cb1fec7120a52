#include "analysis/leaks/leak_limit.h"

#include <algorithm>

namespace gpumemprof {

std::optional<uint64_t> memory_limit(uint16_t index, const Tables& tables,
                                     std::optional<uint64_t> capacity_bytes) {
  if (capacity_bytes || index >= tables.devices.size()) return capacity_bytes;
  const Device& device = tables.devices[index];
  for (const FollowedAllocator& allocator : tables.allocators) {
    const bool is_it = allocator.process == device.process && allocator.type == device.type &&
                       allocator.index == device.index;
    if (is_it && allocator.device_bytes != 0) return allocator.device_bytes;
  }
  return std::nullopt;
}

Room room_of(uint16_t index, const Tables& tables, uint64_t held_bytes,
             std::optional<uint64_t> capacity_bytes, const std::vector<HostRoom>* host_rooms) {
  const std::optional<uint64_t> limit = memory_limit(index, tables, capacity_bytes);
  if (limit) return {limit, *limit - std::min(*limit, held_bytes)};
  const HostRoom* room = host_room_of(index, tables, host_rooms);
  return room ? Room{room->limit_bytes, room->free_bytes} : Room{};
}

const HostRoom* host_room_of(uint16_t index, const Tables& tables,
                             const std::vector<HostRoom>* host_rooms) {
  if (!host_rooms || index >= tables.devices.size()) return nullptr;
  const Device& device = tables.devices[index];
  if (!is_host_memory(device) || device.process >= tables.processes.size()) return nullptr;
  const Process& process = tables.processes[device.process];
  const auto room = std::ranges::find_if(*host_rooms, [&](const HostRoom& one) {
    return one.pid == process.pid && one.host == process.host;
  });
  return room == host_rooms->end() ? nullptr : &*room;
}

LeakLimit limit_of(const Leak& leak, const Room& room) {
  LeakLimit out{.limit_bytes = room.limit_bytes};
  if (!out.limit_bytes) {
    out.why_unknown = "the capacity is not known: give --capacity 24GiB";
    return out;
  }
  const bool slows = leak.most().slows;
  if (slows) out.why_unknown = "the growth slows down";
  if (slows || leak.bytes_a_step <= 0) return out;
  const double steps = static_cast<double>(room.free_bytes) / leak.bytes_a_step;
  if (steps > 1e15) return out;
  out.steps_left = static_cast<uint64_t>(steps);
  if (leak.seconds_a_step > 0 && steps * leak.seconds_a_step < 1e15) {
    out.seconds_left = static_cast<uint64_t>(steps * leak.seconds_a_step);
  }
  return out;
}

void end_again(Finding* finding) {
  if (finding->kind == FindingKind::kLeak) finding->severity = Severity::kCritical;
}

}  // namespace gpumemprof
