#include "analysis/leaks/leak_limit.h"

namespace gpumemprof {
namespace {

std::optional<uint64_t> recorded_size(const Device& device, const Tables& tables) {
  for (const FollowedAllocator& allocator : tables.allocators) {
    const bool is_it = allocator.process == device.process && allocator.type == device.type &&
                       allocator.index == device.index;
    if (is_it && allocator.device_bytes != 0) return allocator.device_bytes;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> memory_limit(uint16_t device, const Tables& tables,
                                     std::optional<uint64_t> capacity_bytes) {
  if (capacity_bytes || device >= tables.devices.size()) return capacity_bytes;
  return recorded_size(tables.devices[device], tables);
}

LeakLimit limit_of(const Leak& leak, const Tables& tables, uint64_t held_bytes,
                   std::optional<uint64_t> capacity_bytes) {
  LeakLimit out{.limit_bytes = memory_limit(leak.device, tables, capacity_bytes)};
  if (!out.limit_bytes) {
    out.why_unknown = "the capacity is not known: give --capacity 24GiB";
    return out;
  }
  if (leak.bytes_a_step <= 0) return out;
  const uint64_t left = *out.limit_bytes > held_bytes ? *out.limit_bytes - held_bytes : 0;
  const double steps = static_cast<double>(left) / leak.bytes_a_step;
  if (steps > 1e15) return out;
  out.steps_left = static_cast<uint64_t>(steps);
  if (leak.seconds_a_step > 0 && steps * leak.seconds_a_step < 1e15) {
    out.seconds_left = static_cast<uint64_t>(steps * leak.seconds_a_step);
  }
  return out;
}

}  // namespace gpumemprof
