// What is taken from a profile.proto, and how: one walk for what is referred to, one for the
// samples.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "readers/protobuf.h"
#include "trace/tables.h"

namespace gpumemprof::pprof {

/// One sample: buffers of one stack, kind and device.
struct Row {
  uint32_t stack = 0;  ///< in Profile::tables
  uint16_t device = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< of the sample, in the profile
};

struct Profile {
  Tables tables;  ///< one process of which nothing is known, and the devices
  std::vector<Row> rows;
  uint64_t negative_samples = 0;  ///< left out: there is no such number of buffers or bytes
  uint64_t taken_at_ns = 0;       ///< since 1970; 0: the file does not say
};

/// `bytes` are used while it runs and not afterwards. Errors: kBadInput with the byte of `bytes`.
Result<Profile> parse_profile(std::string_view bytes, MemoryBudget* budget);

}  // namespace gpumemprof::pprof
