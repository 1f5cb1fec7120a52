// The text of PYTORCH_CUDA_ALLOC_CONF as a list of settings, and texts that are worth trying.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "allocator/release.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Keys that act only below a limit of the process.
inline constexpr std::string_view kGarbageCollection = "garbage_collection_threshold";
inline constexpr std::string_view kMemoryFraction = "per_process_memory_fraction";

/// `recorded` with the settings of `change` in the place of those of the same name, the rest behind
/// it: what to put into the environment for one change. Both are taken apart at commas outside of
/// brackets; nothing is checked.
std::string merge_settings(std::string_view recorded, std::string_view change);

/// The recorded settings as text: that of the file, else what its fields say; empty for PyTorch's
/// defaults.
std::string recorded_text(const RecordedSettings& settings);

/// The variable that carries settings in `release`: PYTORCH_CUDA_ALLOC_CONF through 2.9, then
/// PYTORCH_ALLOC_CONF, as the former is deprecated.
const char* settings_variable(const Release& release);

struct CandidateOptions {
  bool has_capacity = false;  ///< garbage collection acts only on a limited device
  bool has_limit = false;     ///< and the process has a limit of its own, which stays as it is
  size_t most = 24;
};

/// Changes that may help this trace under `release`, in order of how little they change: expandable
/// segments, PyTorch's defaults, the recorded settings without one of theirs, split limits between
/// the sizes that were asked for, rounding, larger segments, and pairs of them. Those that the
/// recorded settings have already are left out.
std::vector<std::string> candidate_settings(const AllocatorTrace& trace,
                                            const RecordedSettings& settings,
                                            const Release& release,
                                            const CandidateOptions& options);

}  // namespace gpumemprof
