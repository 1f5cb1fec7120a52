// What the state of a pool of TensorFlow's says beyond what is live in it.
#pragma once

#include "analysis/analysis.h"
#include "readers/bfc_pool.h"

namespace gpumemprof {

/// Gives the only device of `analysis` its pool and adds to `analysis->findings`: what the pool
/// holds and in which pieces it is free, how much of what is in use was never asked for, and a
/// higher peak of before. Evidence in bytes and counts.
void add_pool(std::shared_ptr<const BfcPool> pool, Analysis* analysis);

}  // namespace gpumemprof
