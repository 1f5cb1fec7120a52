// What to do about a peak: the last sentence of its explanation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

inline constexpr const char* kNextIsAdvice =
    "Next: gpumemprof advise looks for changes that lower it.";

inline constexpr uint64_t kSentenceShare = 10;  ///< a tenth of the peak is worth a sentence

/// What the sentences before have found of the peak.
struct PeakMakeup {
  bool has_categories = false;
  uint64_t activations_bytes = 0, others_of_batch_bytes = 0;
  bool cannot_checkpoint = false;  ///< the program does so already, or it would save nothing
  std::string level;  ///< that between steps: the end of a sentence; or empty
};

struct NextStep {
  std::string text;              ///< one sentence; empty: nothing is known to do
  bool asks_for_advice = false;  ///< advice without a price would go before it
  std::vector<std::pair<std::string, uint64_t>> figures;  ///< that it rounds; names end in the unit
};

/// `advice`: what was found, or null. `folder`: paths of code below it are shown relative to it.
NextStep next_step(const Analysis& analysis, const Tables& tables, const DeviceAnalysis& device,
                   std::string_view folder, const AdviceReport* advice, const PeakMakeup& makeup);

/// What advise does not look for: settings that can be simulated, else the line to look at first.
/// Empty where no line is known.
std::string next_without_advice(const Tables& tables, const DeviceAnalysis& device,
                                std::string_view folder);

}  // namespace gpumemprof
