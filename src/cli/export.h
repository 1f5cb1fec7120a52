// The parts of `export`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "base/error.h"
#include "trace/anonymizer.h"

namespace gpumemprof {

/// export --to perfetto-tar.
/// Every process of `paths` as a trace of its own, in one archive. What cannot be read is named and
/// left out. `names` may be null. The exit code.
int export_perfetto_archive(const std::vector<std::string>& paths, const std::string& output_path,
                            const std::shared_ptr<Anonymizer>& names);

// A moment of a recording as the user writes it.

struct MomentArgument {
  enum Kind : uint8_t { kPeak, kLastAllocation, kEnd, kTotal, kRequested };
  Kind kind = kPeak;
  MomentRequest request;  ///< of kRequested
};

/// "peak", "last-alloc", "end", "total"; "step:3", the end of that step; "1.5s", "250ms", "90us" or
/// seconds alone, after the first event. Errors: kUsage with one sentence.
Result<MomentArgument> parse_moment(std::string_view text);

/// "at the peak", "at the end of step 3", "1.500 s after the first event".
std::string moment_words(const MomentArgument& at);

/// What was live then, or what of the recording does not reach there: kUsage.
Result<const LiveMoment*> requested_moment(const DeviceAnalysis& device, const Analysis& analysis,
                                           const MomentRequest& request);

}  // namespace gpumemprof
