// Details of findings, in words.
#pragma once

#include <string>
#include <vector>

#include "analysis/finding.h"

namespace gpumemprof {

/// One line to hand on: "Leak: History.losses keeps 16.5 MiB more with every step (train.py:18).
/// Fix: …." Not yet safe to print.
std::string finding_sentence(const Finding& finding);

/// Details of a leak: rate, confidence, lines, holder, limit. Not yet safe to print.
std::vector<std::string> finding_details(const Finding& finding);

}  // namespace gpumemprof
