// Recommendations for people: lines for a terminal, and a report in Markdown.
#pragma once

#include <string>

#include "analysis/advice/tensorflow_advice.h"
#include "analysis/series/telemetry_series.h"

namespace gpumemprof {

/// "2 suggestions" and a line or two each, with the bytes at stake; then what could not be told,
/// and why. `otherwise`: what is said where there is no suggestion; may be empty. Safe for a terminal
/// whatever the recording holds.
std::string advice_text(const AdviceReport& report, const std::string& otherwise = "");

/// The findings of samples as advice of TensorFlow's. Samples do not show ops, so the rest is
/// unknown.
AdviceReport advise_of_samples(const TelemetryAnalysis& analysis);

/// A report for a colleague: `text` is the whole analysis as text, which goes in as it is;
/// `otherwise` as of advice_text().
std::string advice_markdown(const std::string& path, const std::string& text,
                            const AdviceReport* advice, const std::string& otherwise = "");

}  // namespace gpumemprof
