// A moment of a recording as the user writes it.
#pragma once

#include <string_view>

#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

struct MomentArgument {
  enum Kind : uint8_t { kPeak, kEnd, kTotal, kRequested };
  Kind kind = kPeak;
  MomentRequest request;  ///< of kRequested
};

/// "peak", "end", "total"; "step:3", the end of that step; "1.5s", "250ms", "90us" or seconds
/// alone, after the start of the recording. Errors: kUsage with one sentence.
Result<MomentArgument> parse_moment(std::string_view text);

/// "at the peak", "at the end of step 3", "1.500 s after the start".
std::string moment_words(const MomentArgument& at);

/// What was live then, or what of the recording does not reach there: kUsage.
Result<const LiveMoment*> requested_moment(const DeviceAnalysis& device, const Analysis& analysis,
                                           const MomentRequest& request);

}  // namespace gpumemprof
