// Why an allocation could not be served, and what would have served it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/layout.h"
#include "allocator/process_room.h"
#include "allocator/replay.h"
#include "analysis/replay/allocator_moment.h"
#include "base/size.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// How many out-of-memory events of a device are explained: the first ones and the last. The rest
/// are counted.
inline constexpr size_t kMostOoms = 4;

enum class RefusalCause : uint8_t {
  kWantOfMemory,   ///< all free memory in one piece would not have been enough
  kFragmentation,  ///< it would have been, but it was in pieces
  kOtherCache,     ///< one piece was enough, but another pool, stream or class of sizes had it
  kLimit,          ///< as kWantOfMemory, but the device had enough: the process's own limit refused it
};
/// "want_of_memory", "fragmentation", "other_cache", "limit"
const char* oom_cause_name(RefusalCause cause);

/// A free block that would have served the request, were it in the cache of its pool and stream.
struct OtherCache {
  std::string place;  ///< "the cache of stream 8", "private pool (0,1)"
  uint64_t piece_bytes = 0;
  int64_t stream = 0;
  std::pair<int64_t, int64_t> pool;
  // Of neither: a class of sizes, or the default pool of a request for a private one.
  bool is_private = false;    ///< a private pool, which the request was not for
  bool is_of_stream = false;  ///< another stream of the same pool
  SegmentPicture segment;     ///< that the block is in
  /// "900 MiB were free in one piece, but in the cache of stream 8"
  std::string text() const;
};

/// One setting that was tried on the same trace and device size.
struct OomTrial {
  std::string settings;  ///< as in PYTORCH_CUDA_ALLOC_CONF
  bool fits = false;     ///< nothing failed up to and with the event
  std::optional<uint64_t> fails_at_event;
  uint64_t peak_reserved_bytes = 0;  ///< up to the event
};

struct OomExplanation {
  uint64_t event = 0;   ///< index in the device's trace
  uint64_t number = 0;  ///< of the device's refusals, from 0
  bool went_on = false;  ///< the trace has an allocation after the last refusal
  std::optional<int64_t> time_us;
  uint32_t stack = 0;
  uint64_t asked_bytes = 0;        ///< rounded, as the event has it
  uint64_t device_free_bytes = 0;  ///< what the device had free, as the event has it
  AllocatorMoment moment;          ///< the replay right after it
  Obstacle obstacle;
  ProcessRoom room;  ///< the most that this process could have had of the device then
  /// Of the device, in other processes or CUDA's own; absent where the device's size is not known.
  std::optional<uint64_t> held_by_others_bytes;
  /// A free block that would have served it, right after it was refused: the cache was not searched
  /// again when the streams had been waited for. 0: none, or its pool is not known.
  uint64_t fitting_bytes = 0;
  uint64_t free_inside_bytes = 0;  ///< reserved and not in use, in pieces
  RefusalCause cause = RefusalCause::kWantOfMemory;
  std::optional<OtherCache> other_cache;  ///< of kOtherCache
  /// Of kWantOfMemory and kLimit: asked − everything that was free; 0 where the limit is not known.
  uint64_t missing_bytes = 0;
  /// The largest request that would have been served; not known with expandable segments.
  std::optional<uint64_t> largest_fit_bytes;
  static constexpr uint64_t kLargestSmallBytes = kMiB;  ///< that the pool of small blocks serves
  /// Whether the simulation runs out at the same event under the recorded settings; the trials and
  /// more_bytes_needed are worth nothing otherwise, and are empty.
  bool is_reproduced = false;
  std::string not_reproduced;  ///< why
  std::vector<OomTrial> trials;
  /// With this much more device memory, or this much higher a limit, it would have fitted under the
  /// recorded settings; in 2 MiB steps.
  std::optional<uint64_t> more_bytes_needed;

  /// What it could still have reserved: "24.0 MiB", or "906 MiB to 916 MiB" where a limit is not
  /// known to the byte.
  std::string left_text() const;
};

/// Facts of the moment itself; try_settings() adds the trials.
OomExplanation explain_oom(const AllocatorTrace& trace, uint64_t event, const Simulator& simulator);

/// Simulates the trace up to the event under the settings of a sweep with the same room, with up to
/// `threads` threads: about twenty to forty runs over the events.
void try_settings(const AllocatorTrace& trace, const TraceStart& start,
                  const RecordedSettings& settings, const Release& release,
                  unsigned threads, OomExplanation* oom);

/// The trial to recommend: the first that fits in the order of trials. Null where none does.
const OomTrial* best_trial(const OomExplanation& oom);

}  // namespace gpumemprof
