// Reads the memory events of TensorFlow's profiles, *.xplane.pb: what the allocators of the BFC
// kind reported while the profiler was on. docs/tensorflow-files.md says what is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "trace/event_source.h"

namespace gpumemprof {

struct XplaneLimits {
  /// Memory for what is kept beside the file itself, in bytes; 0: twice the file's size and 256
  /// MiB.
  uint64_t memory_bytes = 0;
};

/// A source of kind "tensorflow_xplane". Its devices are the allocators, its stacks the names of
/// operations, as in recordings, and below them what the block is (tensor.h) where the file says
/// it; steps as in recordings. Times are nanoseconds since the profile began;
/// Process::realtime_offset_ns makes wall-clock times of them where the file has the beginning.
///
/// A profile is a window: what was live when it began is in the state before the first event, as
/// far as the frees in it and the allocator's own running totals tell; what stayed live and of
/// which only the sum is known is one block without a stack. Loss::reasons says so.
///
/// The file's bytes are held while it is read, then 64 bytes an event. Errors: kNotFound, kSystem,
/// kBadInput with the byte.
Result<std::unique_ptr<EventSource>> read_xplane(File& file, const XplaneLimits& limits = {});

/// Whether a file that begins with `bytes` is a profile: its first field is a plane with a name as
/// profilers give it. 512 bytes are enough.
bool looks_like_xplane(std::string_view bytes);

}  // namespace gpumemprof
