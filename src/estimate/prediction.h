// What a run will need, said before it is paid for. Every way of estimating (a closed form over a configuration, a
// trace of two steps) ends in a Prediction, and every report reads one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/category_rules.h"

namespace gpumemprof {

/// A figure with what it may turn out to be. `low` and `high` hold the middle 90 % of what was measured against
/// estimates of the same kind, where any was; equal to `expected` where the figure is arithmetic.
struct PredictedBytes {
  uint64_t expected = 0, low = 0, high = 0;
};

/// How an estimate was come by, from the surest to the roughest.
enum class EstimateMethod : uint8_t {
  kTraceOfScript,   ///< the user's own script under fake or meta tensors
  kTraceOfModel,    ///< a model of a library with a training loop of ours
  kTraceOnHost,     ///< the script could not be traced: real CPU tensors at a small batch
  kClosedForm,      ///< from a configuration alone
};

struct PredictedShare {
  std::string name;  ///< a module path, or what the closed form calls it
  Category category = Category::kUnknown;
  uint64_t bytes = 0;
};

/// What was taken for true without having been looked at.
struct Assumption {
  std::string what;    ///< "CUDA context and library handles: 1,760 MiB"
  std::string source;  ///< where it comes from: "table, no GPU here", "measured by calibrate", "config.json"
};

struct Prediction {
  EstimateMethod method = EstimateMethod::kClosedForm;
  uint64_t batch = 0;  ///< per device and step; 0: unknown
  /// Absent where the method cannot say, with the reason in `unknown`.
  std::optional<PredictedBytes> live;       ///< highest sum of live tensors
  std::optional<PredictedBytes> allocated;  ///< what torch.cuda.max_memory_allocated() would say
  std::optional<PredictedBytes> reserved;   ///< what torch.cuda.max_memory_reserved() would say
  std::optional<PredictedBytes> device;     ///< what nvidia-smi would say of the process
  std::vector<PredictedShare> at_peak;      ///< adds up to live->expected (closed form: allocated); the largest first
  std::vector<Assumption> assumptions;
  std::vector<std::string> unknown;         ///< one sentence each
};

}  // namespace gpumemprof
