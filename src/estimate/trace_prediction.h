// From a traced loop to what is told of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/config.h"
#include "allocator/release.h"
#include "estimate/prediction.h"
#include "estimate/simulate.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

/// Where the loop would run.
struct TraceScenario {
  AllocatorConfig config;
  std::string settings;  ///< the text that `config` was read from; empty: PyTorch's defaults
  Release release = newest_release();
  std::optional<uint64_t> device_constant_bytes;    ///< absent: the table's
  std::string device_constant_source;               ///< of the one that is given
  std::optional<uint64_t> product_workspace_bytes;  ///< of cuBLAS, a handle; absent: the table's
};

Prediction predict_from_trace(const StepTrace& trace, const TraceScenario& scenario);

/// What is live right after event `event`, by module and category, the largest first.
std::vector<PredictedShare> shares_at(const StepTrace& trace, uint64_t event);

/// True where the loop runs through on a device on which this process can have `capacity_bytes`:
/// the allocator gives back what it has cached before it gives up. The device's other figures, and
/// by `by_upper_end` the spread of measured figures above predicted ones, are taken off first.
bool fits_into(const StepTrace& trace, const TraceScenario& scenario, uint64_t capacity_bytes,
               bool by_upper_end);

/// The allocator's settings where this is all that the process can have, with the same taken off.
AllocatorConfig config_within(const TraceScenario& scenario, uint64_t capacity_bytes,
                              bool by_upper_end);

}  // namespace gpumemprof
