#include "readers/xplane/names.h"

#include <array>
#include <utility>

#include "readers/xplane/fields.h"

namespace gpumemprof::xplane {
namespace {

// The words of TraceMe events that BFCAllocator::AddTraceMe writes.
constexpr std::array<std::pair<std::string_view, Stat>, 11> kStats = {
    {{"allocator_name", Stat::kAllocator},
     {"bytes_allocated", Stat::kTotal},
     {"peak_bytes_in_use", Stat::kPeak},
     {"requested_bytes", Stat::kRequested},
     {"allocation_bytes", Stat::kSize},
     {"addr", Stat::kAddress},
     {"tf_op", Stat::kOperation},
     {"id", Stat::kStep},
     {"data_type", Stat::kType},
     {"shape", Stat::kShape},
     {"profile_start_time", Stat::kStart}}};

Stat stat_of(std::string_view name) {
  for (const auto& [text, stat] : kStats) {
    if (name == text) return stat;
  }
  return Stat::kOther;
}

struct Entry {
  int64_t id = 0;
  std::string_view name;
};

/// An entry of either dictionary: both have the name in the same field.
Result<Entry> read_entry(ProtobufFields entry) {
  Entry out;
  while (entry.next()) {
    if (entry.number() == field::kKey) out.id = entry.signed_integer();
    if (entry.number() != field::kValue) continue;
    ProtobufFields value = entry.message();
    while (value.next()) {
      if (value.number() == field::kMetadataName) out.name = value.bytes();
    }
    if (auto status = value.status(); !status) return std::unexpected(status.error());
  }
  if (auto status = entry.status(); !status) return std::unexpected(status.error());
  return out;
}

}  // namespace

Result<Names> read_names(std::string_view plane, uint64_t offset, MemoryBudget* budget) {
  constexpr uint64_t kEntryBytes = 2 * sizeof(std::pair<int64_t, StatName>);
  Names names;
  ProtobufFields fields(plane, offset);
  while (fields.next()) {
    const bool is_event = fields.number() == field::kPlaneEvents;
    if (!is_event && fields.number() != field::kPlaneStats) continue;
    auto entry = read_entry(fields.message());
    if (!entry) return std::unexpected(entry.error());
    if (!budget->take(kEntryBytes)) return fail_at(fields.offset(), kTooMuchMemory);
    if (!is_event) {
      names.stats[entry->id] = {entry->name, stat_of(entry->name)};
    } else if (entry->name == "MemoryAllocation") {
      names.allocations.insert(entry->id);
    } else if (entry->name == "MemoryDeallocation") {
      names.deallocations.insert(entry->id);
    }
  }
  if (auto status = fields.status(); !status) return std::unexpected(status.error());
  return names;
}

}  // namespace gpumemprof::xplane
