// Fills JobRanks.
#pragma once

#include <memory>

#include "analysis/analysis.h"
#include "analysis/ranks/job_pass.h"
#include "analysis/ranks/job_ranks.h"

namespace gpumemprof {

/// Null where there are no two ranks and none is missing. After all else is known of `analysis`.
/// `has_names`: those in `tables` are the program's, not others in their place.
std::shared_ptr<const JobRanks> find_ranks(const Analysis& analysis, const Tables& tables,
                                           const JobSums& sums, bool has_names);

/// Of ranks whose memory has parameters with names: what they tell of how the work is divided.
void find_parallelism(const Analysis& analysis, const Tables& tables, JobRanks* job);

/// Of those that the others wait for.
void find_stragglers(const Analysis& analysis, const Tables& tables, const JobSums& sums,
                     JobRanks* job);

/// The analysis of a rank's memory; null where it has none.
const DeviceAnalysis* memory_of(const Analysis& analysis, const OneRank& rank);

}  // namespace gpumemprof
