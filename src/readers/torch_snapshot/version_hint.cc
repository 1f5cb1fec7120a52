#include "readers/torch_snapshot/assemble.h"

#include "readers/torch_snapshot/keys.h"

namespace gpumemprof::torch_snapshot {

std::string version_hint(const SeenKeys& seen, uint64_t top, bool has_annotate_action) {
  const bool reuse = seen.settings & bit(kKeyGraphCaptureRecordStreamReuse);
  // Newest first. What an event lacks counts only where there is an event to lack it.
  if (has_annotate_action) return "torch 2.15 or later";
  if (top & (bit(kKeyHostSegments) | bit(kKeyHostTraces))) return "torch 2.14 or later";
  if (seen.event & bit(kKeyPoolId)) return "torch 2.12 or later";
  if (seen.event & bit(kKeyUserMetadata)) return "torch 2.10 or 2.11";
  if (seen.event & bit(kKeyCompileContext)) return reuse ? "torch 2.9" : "torch 2.7 or 2.8";
  const bool settings = top & bit(kKeyAllocatorSettings);
  const bool annotations = top & bit(kKeyExternalAnnotations);
  // no_history files hold one event, written without its optional keys: frames tell a real one.
  const bool has_events = seen.event & bit(kKeyFrames);
  if (annotations && settings) {
    // 2.7 and later have compile_context, unless a program wrote the file and left it out. Without
    // pool_id, which tells where blocks may lie, a file of 2.12 and later could not be replayed.
    if (has_events) return "torch 2.6 to 2.11";
    return reuse ? "torch 2.9 or later" : "torch 2.6 to 2.8";
  }
  if (settings) return "torch 2.5";
  if (seen.block & bit(kKeyHistory)) return "torch 2.0 or earlier";
  if (seen.event & bit(kKeyTimeUs)) return "torch 2.2 to 2.4";
  if (seen.segment & bit(kKeySegmentPoolId)) {
    if (has_events) return "torch 2.1";
    return top == 0 ? "torch 2.1 or later" : "torch 2.1 to 2.4";
  }
  if (seen.segment != 0) return "torch 2.0 or earlier";
  return has_events ? "torch 2.1 or earlier" : "";
}

}  // namespace gpumemprof::torch_snapshot
