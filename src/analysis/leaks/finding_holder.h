// Who holds what a leak keeps, in its finding, or why nobody knows.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/finding.h"
#include "analysis/leaks/holder_stacks.h"
#include "analysis/leaks/leak_evidence.h"

namespace gpumemprof {

/// `container`: what holds the objects that hold the lines' memory; or empty. `live_blocks`: at the
/// end. `told`: the looks of its process; may be null.
void add_holder(const HolderStacks::Held& held, std::string_view container, uint64_t live_blocks,
                const ProcessHolders* told, Finding* finding);

/// Says so where most of what is held are parts of larger storages, which a copy would let go.
void add_views(const LeakEvidence& evidence, Finding* finding);
/// Whether it did: a copy is then the fix, whatever else is known.
bool tells_views(const Finding& finding);

}  // namespace gpumemprof
