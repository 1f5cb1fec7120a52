// An estimate as it is shown: the prediction, where it fits, what that costs, and other settings
// beside it.
#pragma once

#include <string>
#include <vector>

#include "estimate/boards.h"
#include "estimate/prediction.h"

namespace gpumemprof {

/// The cheapest board of the user's own price list on which the prediction fits.
struct BoardPrice {
  std::string board;
  uint64_t usable_bytes = 0;
  double price_per_hour = 0;
  std::string currency;
};

/// One line of a table over settings.
struct PredictionRow {
  std::string settings;  ///< "adamw, bf16, checkpointing full"
  Prediction prediction;
};

/// The largest batch that fits, where one was asked for.
struct LargestBatch {
  uint64_t batch = 0;           ///< 0: not even one fits
  uint64_t capacity_bytes = 0;  ///< what it had to fit into
  bool by_upper_end = true;     ///< the interval's upper end was compared, not the expected figure
};

struct EstimateAnswer {
  std::string subject;  ///< "config.json (llama)", "python train.py"
  std::string setup;    ///< "training, adamw, bf16, sequence 4096"; may be empty
  Prediction prediction;
  std::vector<BoardFit> boards;
  std::optional<uint64_t> capacity_bytes;  ///< what the user said the device has
  bool prices_given = false;
  std::optional<BoardPrice> cheapest;  ///< absent although prices were given: none of them fits
  std::vector<PredictionRow> table;
  std::optional<LargestBatch> largest_batch;
};

}  // namespace gpumemprof
