// The memory of training or inference of a transformer, from its configuration alone.
#pragma once

#include <string_view>

#include "estimate/answer.h"
#include "estimate/model_config.h"
#include "estimate/training_setup.h"

namespace gpumemprof {

/// Errors: kUsage where the sum is beyond any machine.
Result<Prediction> predict_closed_form(const ModelShape& shape, const TrainingSetup& setup);

/// A configuration that was read, ready to be asked more than once.
struct ConfigurationCase {
  ConfigValues values;
  ModelShape shape;
};
/// `text`: a file's. Errors: kBadInput with the byte where the parser gives it, kUnsupported.
Result<ConfigurationCase> read_configuration(std::string_view text);

/// What of it a rank of a pipeline holds.
struct RankContents {
  std::vector<uint64_t> layers;  ///< of the decoder or the only stack
  bool has_embedding = false, has_output = false;
  uint64_t in_flight =
      1;  ///< micro batches of one chunk of its layers that are kept at once, all chunks together
};
RankContents rank_contents(const ModelShape& shape, const TrainingSetup& setup, uint64_t stage);

}  // namespace gpumemprof
