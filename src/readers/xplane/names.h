// The two dictionaries of a plane: its events and their properties refer to names by number.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string_view>

#include "readers/protobuf.h"

namespace gpumemprof::xplane {

/// The properties of a memory event that are read.
enum class Stat : uint8_t {
  kOther,
  kAllocator,
  kTotal,
  kPeak,
  kRequested,
  kSize,
  kAddress,
  kOperation,
  kStep,
  kType,
  kShape,
  kStart,
};

struct StatName {
  std::string_view text;
  Stat stat = Stat::kOther;
};

/// Views point into the plane's bytes.
struct Names {
  absl::flat_hash_set<int64_t> allocations, deallocations;  ///< numbers of events
  absl::flat_hash_map<int64_t, StatName> stats;
  bool has_memory_events() const { return !allocations.empty() || !deallocations.empty(); }
};

/// Errors: kBadInput.
Result<Names> read_names(std::string_view plane, uint64_t offset, MemoryBudget* budget);

}  // namespace gpumemprof::xplane
