#include "analysis/replay/snapshot_troubles.h"

#include <algorithm>

#include "allocator/layout.h"
#include "analysis/replay/changed_trace.h"
#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostStreams = 64;  // a file may name 65,536, and let each request reserve more

AllocatorTrace on_one_stream(const AllocatorTrace& trace) {
  AllocatorTrace out = changed_events(trace, [](size_t, AllocatorEvent* event) {
    event->stream = 0;
    return true;
  });
  for (AllocatorSegment& segment : out.segments) segment.stream = 0;
  return out;
}

}  // namespace

void StrandedCache::look(uint64_t event, const Simulator& simulator) {
  const AllocatorEvent of = trace_->events[event];
  if (of.action != Action::kAlloc && of.action != Action::kOom) return;
  uint64_t free = 0;
  const size_t streams = std::min(trace_->streams.size(), kMostStreams);
  for (size_t stream = 0; stream < streams; ++stream) {
    if (stream == of.stream) continue;
    free += free_bytes(simulator, {.requested_bytes = of.size_bytes,
                                   .stream = static_cast<uint16_t>(stream),
                                   .pool = start_->facts.pool_of(*trace_, of)});
  }
  if (free <= most_) return;
  most_ = free, event_ = event, needed_ = of.size_bytes;
}

std::optional<Finding> StrandedCache::find(const RecordedSettings& settings,
                                           const SnapshotDevice& device) const {
  if (!is_worth(most_, device.replay.peak_reserved.bytes)) return std::nullopt;
  const ChangeSimulated one =
      simulate_change(*trace_, *start_, on_one_stream(*trace_), settings, device);
  const uint64_t before = one.as_it_was.peak_reserved_bytes;
  if (!is_worth(one.saved_bytes(), before) && !one.avoids_all_refusals()) return std::nullopt;
  const AllocatorEvent of = trace_->events[event_];
  Finding finding{
      .kind = FindingKind::kStrandedStreamCache,
      .severity = Severity::kWarning,
      .title = format_bytes(most_) + " were free in other streams' caches when a request of " +
               format_bytes(needed_) + " on stream " +
               std::to_string(trace_->streams[of.stream]) +
               (of.action == Action::kOom ? " was refused" : " reserved new memory"),
      .bytes = one.saved_bytes() != 0 ? one.saved_bytes() : most_,
      .evidence = {{"event_index", event_},
                   {"stranded_bytes", most_},
                   {"asked_bytes", needed_},
                   {"streams", trace_->streams.size()},
                   {"peak_reserved_bytes", before},
                   {"one_stream_peak_reserved_bytes", one.changed.peak_reserved_bytes}},
      .stack = of.stack,
      .fix = "allocate on one stream and let the others only compute, or call "
             "torch.cuda.empty_cache() when a stream's work is done: in the simulation with one "
             "stream, " +
             (one.avoids_all_refusals()
                  ? std::string("no request is refused")
                  : format_bytes(one.changed.peak_reserved_bytes) +
                        " are reserved at most instead of " + format_bytes(before)),
      .is_fix_simulated = true};
  return finding;
}

}  // namespace gpumemprof
