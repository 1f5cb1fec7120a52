// The analysis for people at a terminal: the answer in the first five lines, then the tables.
#pragma once

#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"

namespace gpumemprof {

struct TextOptions {
  bool color = false;
  bool shows_source = false;   ///< lines of code with their text: reads files
  bool full_stacks = false;    ///< every frame, not the user's own and the innermost alone
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
  const AdviceReport* known_advice = nullptr;  ///< decides what is next; may be null
};

/// Safe for a terminal whatever the recording holds.
std::string text_report(const Analysis& analysis, const Tables& tables, const TextOptions& options);

}  // namespace gpumemprof
