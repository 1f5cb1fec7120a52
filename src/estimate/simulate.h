// A traced loop on PyTorch's allocator: how high it comes, and what is there then.
#pragma once

#include <cstdint>
#include <optional>

#include "allocator/config.h"
#include "allocator/release.h"
#include "allocator/simulator.h"
#include "estimate/library_table.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

struct StepPeaks {
  uint64_t live_bytes = 0;       ///< sum of the sizes of live storages
  uint64_t live_event = 0;       ///< right after it they are highest
  uint64_t allocated_bytes = 0;  ///< rounded, with workspaces
  uint64_t reserved_bytes = 0;
  uint64_t workspace_bytes = 0;  ///< the largest that was asked for
  uint64_t num_alloc_retries = 0;
  std::optional<uint64_t> first_oom_event;  ///< it ends there: figures are of what came before
  bool is_beyond_measure = false;  ///< more than 2^60 bytes, or too many steps: ended there
};

/// Without a limit in `config` nothing runs out.
StepPeaks simulate_steps(const StepTrace& trace, const AllocatorConfig& config,
                         const Release& release, const LibraryTable& table);

}  // namespace gpumemprof
