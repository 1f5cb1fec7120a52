// Leaks as findings: what, where, how fast, until when, and what to do.
#pragma once

#include <optional>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/categories/categories.h"
#include "analysis/leaks/holder_stacks.h"
#include "analysis/leaks/leak_history.h"

namespace gpumemprof {

struct LeakContext {
  std::optional<uint64_t> capacity_bytes;  ///< what was given on the command line
  const std::vector<HostRoom>* host_rooms = nullptr;  ///< may be null
  const ProgramEnds* ends = nullptr;                  ///< may be null
  const HolderStacks& holders;
  Categories& categories;  ///< before finish()
};

/// Adds them to `analysis->findings`. The devices of `analysis` must be there. What is kept is told to
/// the categories where its evidence says more than they know, and the other way round, so that both
/// say the same of it.
void add_leak_findings(const std::vector<ProcessHistory>& histories, const Tables& tables,
                       const LeakContext& context, Analysis* analysis);

/// Whether what grows for no known cause is batches, by what is live of its lines at the peak.
bool keeps_inputs(const Finding& finding, const DeviceAnalysis& device, const Tables& tables);

/// Gives these the fix for batches. Where the categories of the devices are known.
void add_fixes_of_inputs(const Tables& tables, Analysis* analysis);

}  // namespace gpumemprof
