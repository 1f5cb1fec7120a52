// Sentences about a replayed snapshot that its reports share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/replay/snapshot_device.h"
#include "trace/tables.h"

namespace gpumemprof {

/// "Its own limit of 8.53 GiB left 920 MiB, and 1.31 GiB were free in its segments, the largest
/// piece 511 MiB: fragmentation."
std::string why_refused(const OomExplanation& oom);
/// What would have fitted, as a headline; empty where nobody knows.
std::string what_would_have_fitted(const OomExplanation& oom);
/// "its own limit of 8.53 GiB (as the error rounds it)".
std::string limit_words(const ProcessRoom& room);
/// Who pins free memory of `segments`, by line: `stack` is a node of it. Sorted as pinning_by().
std::vector<PinningStack> pinning_lines(const std::vector<SegmentPicture>& segments,
                                        const Tables& tables);
/// What was asked and where, what there was, why it failed, what would have fitted. One sentence
/// each, without a line end; safe to print. `is_headline`: what_would_have_fitted() was said above.
std::vector<std::string> oom_details(const OomExplanation& oom, const SnapshotDevice& device,
                                     const Tables& tables, std::string_view folder,
                                     bool is_headline);
/// "Reserved at most 12.1 GiB; at the peak 11.8 GiB: 11.2 GiB allocated (410 MiB of it rounding),
/// …", and what of the most was cached before; of a moment "Reserved 11.8 GiB: …".
std::string reserved_sentence(const SnapshotDevice& device, const Tables& tables, bool is_moment);
/// "1 retry, at event 5: no more memory could be reserved, so 600 MiB of cache were released
/// first."; empty without one.
std::string retries_sentence(const SnapshotDevice& device);
/// How many recorded addresses PyTorch's rules reproduce.
std::string replay_sentence(const SnapshotDevice& device);
/// Notes on the beginning of the trace.
std::vector<std::string> snapshot_caveats(const SnapshotDevice& device,
                                          std::string_view device_name);

}  // namespace gpumemprof
