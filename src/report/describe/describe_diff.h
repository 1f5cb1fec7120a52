// What a report says of the difference of two runs.
#pragma once

#include "report/diff_report.h"
#include "report/document.h"

namespace gpumemprof {

Document describe_diff(const Diff& diff, const DiffOptions& options);

}  // namespace gpumemprof
