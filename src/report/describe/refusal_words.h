// Requests that an allocator refused and that did not end the program, in the words of every
// report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Of a device those refusals that no dump of an uncaught error tells of, in their order.
std::vector<Refusal> caught_refusals(const Analysis& analysis, const DeviceAnalysis& device);

/// It allocated afterwards, or its run ended with 0. False as well where neither is known.
bool went_on_after(const Refusal& refusal, const Analysis& analysis, const Tables& tables,
                   const DeviceAnalysis& device);

/// "The CPU allocator refused 1.00 PiB at train.py:3 <module>; the program went on." One
/// sentence a device. What a replayed history explains is not among them.
std::vector<std::string> caught_refusal_sentences(const Analysis& analysis, const Tables& tables,
                                                  std::string_view working_folder);

}  // namespace gpumemprof
