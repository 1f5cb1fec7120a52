// Where a page shows what a report tells of.
#pragma once

#include <optional>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "report/document.h"

namespace gpumemprof {

/// Nothing where no view shows it: of an allocator's state that has no events.
std::optional<EvidencePlace> evidence_of(const Finding& finding, const Analysis& analysis);
std::optional<EvidencePlace> evidence_of(const Advice& advice);

/// Of the blocks of one line, or of all, at the peak. Nothing for a sum of several allocators:
/// the page has each by itself.
std::optional<EvidencePlace> evidence_at_peak(const DeviceAnalysis& device,
                                         std::vector<uint32_t> lines = {});

}  // namespace gpumemprof
