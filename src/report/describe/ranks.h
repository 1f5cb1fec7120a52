// What reports say of a job's ranks first.
#pragma once

#include <string>
#include <vector>

#include "analysis/ranks/job_ranks.h"
#include "report/describe/sections.h"

namespace gpumemprof {

/// Of ranks that are missing or did not end by themselves with 0, a sentence each.
std::vector<std::string> rank_failures(const JobRanks& job);

/// "Rank 2 is 30.5 MiB above the median of 4 ranks, …", and the line that makes the most of it.
/// Empty where there is nothing to compare.
std::string median_sentence(const Subject& subject, const JobRanks& job);

}  // namespace gpumemprof
