// What a report says of the difference of two runs.
#pragma once

#include "report/diff_report.h"
#include "report/document.h"

namespace gpumemprof {

/// `diff` and what it is of have to live as long as the document: its chart draws from them.
Document describe_diff(const Diff& diff, const DiffOptions& options);

}  // namespace gpumemprof
