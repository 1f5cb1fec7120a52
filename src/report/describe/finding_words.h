// What stands behind a finding, in words.
#pragma once

#include <string>
#include <vector>

#include "analysis/finding.h"

namespace gpumemprof {

/// Of a leak: how fast and how sure, which lines, who holds it, until when. Not yet safe to print.
std::vector<std::string> finding_details(const Finding& finding);

}  // namespace gpumemprof
