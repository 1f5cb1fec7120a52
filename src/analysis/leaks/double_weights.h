// Two sets of the same parameters at the peak, one of which is gone later: old and new weights at a
// hand-off.
#pragma once

#include "analysis/analysis.h"

namespace gpumemprof {

/// Adds "double_weights_in_phase" for each device where parameters that the program named are there
/// more than once at the peak, with the same names and sizes, 32 MiB and a 20th of the peak, and
/// nine tenths of that are gone for a 50th of the run after it while others stay.
void add_double_weights(Analysis* analysis);

}  // namespace gpumemprof
