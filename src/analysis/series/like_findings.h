// What several processes of a run show alike, or too little of to be told.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/analysis.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Workers do what their fellows do: of what is no warning the largest is told, with how many
/// processes have the like. DeviceAnalysis::patterns has all.
void fold_like_findings(const Tables& tables, std::vector<Finding>* found);

/// The device of each type, in all processes, whose peak is the highest.
using HighestOfType = std::map<int8_t, const DeviceAnalysis*>;

/// A worker's buffer of a batch is no news beside the memory that the program needs: an info finding
/// of another device that is below 5 % of the highest peak of its type. DeviceAnalysis::patterns has
/// all.
void drop_small_findings(const HighestOfType& highest, const Tables& tables,
                         std::vector<Finding>* found);

}  // namespace gpumemprof
