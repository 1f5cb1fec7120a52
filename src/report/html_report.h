// The analysis as one HTML file: no network, no script, readable on a phone and in the dark.
#pragma once

#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

struct HtmlOptions {
  size_t holders = 100;       ///< lines of code to list for the main device
  size_t other_devices = 32;  ///< devices that get a section of their own beside the main one
  const AdviceReport* advice = nullptr;  ///< shown where it applies; may be null
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
};

/// Nothing that a recording holds can become markup, and a content security policy forbids the page
/// to load or run anything at all.
std::string html_report(const Analysis& analysis, const Tables& tables, const HtmlOptions& options);

}  // namespace gpumemprof
