// Two sets of the same parameters at the peak, one of which is gone later: old and new weights at a
// hand-off.
#pragma once

#include "analysis/analysis.h"

namespace gpumemprof {

/// Adds "double_weights_in_phase" for each device where parameters that the program named are there
/// more often at the peak than at the end, with the same names and sizes: 32 MiB and a 20th of the
/// peak. Where none of a name is left at the end nothing is said: the program may have been over.
void add_double_weights(Analysis* analysis);

}  // namespace gpumemprof
