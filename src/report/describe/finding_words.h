// What stands behind a finding, in words.
#pragma once

#include <string>
#include <vector>

#include "analysis/finding.h"

namespace gpumemprof {

/// One line to hand on: "Leak: History.losses keeps 16.5 MiB more with every step (train.py:18).
/// Fix: …." Not yet safe to print.
std::string finding_sentence(const Finding& finding);

/// Of a leak: how fast and how sure, which lines, who holds it, until when. Not yet safe to print.
std::vector<std::string> finding_details(const Finding& finding);

}  // namespace gpumemprof
