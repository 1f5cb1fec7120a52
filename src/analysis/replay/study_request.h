// A request for a study of settings, from the command line or Python.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/replay/settings_study.h"
#include "base/error.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

struct StudyRequest {
  std::vector<std::string> settings;  ///< each the whole text of PYTORCH_CUDA_ALLOC_CONF
  std::string capacity;  ///< a size, such as "40GiB", or "none"; empty: as StudyOptions
  std::string torch;     ///< "2.13" or "latest"; empty: the one that wrote the file
  bool sweep = false;
  bool force = false;
  unsigned threads = 2;
};

/// Errors: kUsage where the capacity is no size or nothing, or the release is not known.
Result<StudyOptions> study_options(const StudyRequest& request);

/// The index in `snapshot.traces` of `device`, "cuda:1" or "1"; empty: main_trace(). Errors: kUsage
/// where there is no such device, kUnsupported where the snapshot is empty.
Result<size_t> study_trace(const AllocatorSnapshot& snapshot, std::string_view device);

}  // namespace gpumemprof
