// The peak in one paragraph of plain words. Every number in it is from the trace; what is not known
// is left out or said to be unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

struct PeakExplanation {
  std::string text;  ///< printable, one line
  std::string next;  ///< the sentence on what to do
  std::string then;  ///< the last sentence, where a leak comes second; or empty
  bool asks_for_advice = false;  ///< advice without a price would go before that
  /// The figures that the text rounds, by name; names end in their unit.
  std::vector<std::pair<std::string, uint64_t>> figures;
};

/// Three sentences: what it was, where it was allocated, what to do next. `folder`: paths of code
/// below it are shown relative to it.
///
/// The level between steps is the lower median of what was live at the ends of steps, of those
/// after the first quarter (docs/commands/analyze.md). `advice`: what was found, or null.
PeakExplanation explain_peak(const Analysis& analysis, const Tables& tables,
                             const DeviceAnalysis& device, std::string_view folder,
                             const AdviceReport* advice = nullptr);

/// What to do where advise suggests nothing: the last sentence of the explanation, or where that
/// leads to advise, other allocator settings where they can be simulated, else the line to look at
/// first. Empty where no line is known.
std::string next_beside_advice(const Analysis& analysis, const Tables& tables,
                               const DeviceAnalysis& device, std::string_view folder);
/// Of main_device(); empty where there is none.
std::string next_beside_advice(const Analysis& analysis, const Tables& tables,
                               std::string_view folder);

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
  std::string then;  ///< a sentence on a leak that is a small part of the peak; or empty
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
