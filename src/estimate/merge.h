// Two traces of one loop at two small batches are one trace at any batch: what the program makes
// and drops, and when, does not depend on the batch, and sizes are a + b·batch.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

/// A trace whose sizes follow the batch.
class ScaledTrace {
 public:
  /// Errors: kUnsupported, one sentence that names the first event that differs in more than its
  /// sizes, or that the traces say no two batches. Then only a trace at the wanted batch helps.
  static Result<ScaledTrace> merge(StepTrace low, const StepTrace& high);

  /// The events at `batch`.
  StepTrace at(uint64_t batch) const;
  const StepTrace& low() const { return low_; }

 private:
  uint64_t scaled(uint64_t low_bytes, uint64_t high_bytes, uint64_t batch) const;
  StepTrace low_;
  uint64_t high_batch_ = 0;
  std::vector<uint64_t> high_bytes_;                ///< as low_.events
  std::vector<ConvolutionCall> high_convolutions_;  ///< as low_.convolutions
};

}  // namespace gpumemprof
