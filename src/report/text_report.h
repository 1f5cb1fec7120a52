// The analysis for people at a terminal: the answer in the first five lines, then the tables.
#pragma once

#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "analysis/series/telemetry_series.h"
#include "estimate/cost.h"

namespace gpumemprof {

struct TextOptions {
  bool color = false;
  size_t columns = 0;          ///< of the terminal that shows it; 0: none does
  bool shows_source = false;   ///< lines of code with their text: reads files
  bool full_stacks = false;    ///< every frame, not the user's own and the innermost alone
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
  const AdviceReport* known_advice = nullptr;  ///< decides what is next; may be null
};

/// Safe for a terminal whatever the recording holds.
std::string text_report(const Analysis& analysis, const Tables& tables, const TextOptions& options);

/// A section behind a report: its title and its sentences.
std::string cost_text(const Cost& cost);

/// Safe for a terminal whatever the file holds.
std::string telemetry_text(const TelemetryAnalysis& analysis);

/// Schema "gpumemprof.analysis/1" with source.kind "telemetry": `devices` has no entry, since there
/// are no events; `series` has what samples tell. A finding's `kind` is its type.
std::string telemetry_json_report(const TelemetryAnalysis& analysis);

}  // namespace gpumemprof
