// The analysis as one HTML file: no network, no script, readable on a phone and in the dark.
#pragma once

#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

struct HtmlOptions {
  bool shows_source = false;             ///< lines of code with their text: reads files
  const AdviceReport* advice = nullptr;  ///< shown where it applies; may be null
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
};

/// Nothing that a recording holds can become markup, and a content security policy forbids the page
/// to load or run anything at all.
std::string html_report(const Analysis& analysis, const Tables& tables, const HtmlOptions& options);

}  // namespace gpumemprof
