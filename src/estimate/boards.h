// GPUs and what a process can have of their memory, so that an estimate can say where it fits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimate/prediction.h"

namespace gpumemprof {

/// A GPU as CUDA shows it: the driver keeps a part of the memory for itself, and so does ECC on
/// some boards. `usable_bytes` is available to a run that has the GPU to itself. Sizes are never
/// derived from the product name: vendors mix GB and GiB.
struct BoardFacts {
  std::string name;
  uint64_t usable_bytes = 0;  ///< the total memory that CUDA reports
  std::string source;         ///< where that figure comes from
};

/// The smallest first. No price is in it: prices are the user's to say.
std::span<const BoardFacts> known_boards();

enum class FitVerdict : uint8_t {
  kFits,        ///< the upper end of the interval is below what can be used
  kMayFit,      ///< the interval holds the limit
  kDoesNotFit,  ///< the lower end is above it
  kUnknown,     ///< nothing was predicted to compare with
};
const char* verdict_name(FitVerdict verdict);  ///< "fits", "may fit", "does not fit", "unknown"

struct BoardFit {
  BoardFacts board;
  FitVerdict verdict = FitVerdict::kUnknown;
};

/// What is compared with a board: the whole device, where the method can say it, else what the
/// allocator reserves.
std::optional<PredictedBytes> bytes_that_must_fit(const Prediction& prediction);
FitVerdict fits(const std::optional<PredictedBytes>& need, uint64_t usable_bytes);
std::vector<BoardFit> fit_on_boards(const Prediction& prediction,
                                    std::span<const BoardFacts> boards);

}  // namespace gpumemprof
