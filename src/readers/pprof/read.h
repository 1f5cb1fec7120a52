// Reads what jax.profiler.device_memory_profile() says: the buffers that are live at one moment,
// by the Python stack that made them, with their device and kind. A file of the pprof format
// (profile.proto), compressed with gzip or not. docs/jax.md says what is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "trace/event_source.h"

namespace gpumemprof {

struct PprofLimits {
  /// Memory for what is kept beside the profile's own bytes; 0: eight times these and 64 MiB.
  uint64_t memory_bytes = 0;
  /// Of the decompressed profile. A compressed file can claim a thousand times its own size.
  uint64_t profile_bytes = 512 << 20;
};

/// A source of kind "jax_memory_profile". Its only events are that each device was looked at
/// (kSnapshot); all that is live is in the state before, so peak and end are both that moment's.
/// Its devices are JAX's, one for each kind of holder: "jax:cpu:0" has buffers, "jax:cpu:0
/// executable" and "jax:executable" what compiled code holds. A sample of several buffers says
/// their sum; only that and their number are true of the blocks that it becomes.
///
/// Errors: kSystem; kBadInput with the byte, which counts in the decompressed profile where the
/// message says so. A profile of another kind (no sample type "space" in bytes) is one too.
Result<std::unique_ptr<EventSource>> read_pprof(File& file, const PprofLimits& limits = {});

/// Whether a file that begins with `bytes` is a profile, compressed or not: its first field is a
/// type of sample. 512 bytes are enough.
bool looks_like_pprof(std::string_view bytes);

}  // namespace gpumemprof
