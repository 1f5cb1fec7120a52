// One question about a configuration, answered whole: the prediction, other settings, the largest
// batch, where it fits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimate/answer.h"
#include "estimate/closed_form.h"

namespace gpumemprof {

struct ConfigurationRequest {
  std::string subject;  ///< what it is called in the answer, such as the file's name
  std::vector<SetupOption>
      options;  ///< of training_setup(); "batch" may be "auto", which needs a capacity
  std::optional<uint64_t> capacity_bytes;
  bool table = false;  ///< over optimizers, precisions and checkpointing
  std::string prices;  ///< the text of a price list; empty: none
  /// Of options "device-constant" and "workspace" that were measured; empty: the user said them.
  std::string device_constant_source;
};

/// Errors: as read_configuration() and training_setup(); of the price list with "the price list "
/// before them.
Result<EstimateAnswer> answer_configuration(std::string_view config,
                                            const ConfigurationRequest& request);

/// The largest batch whose upper end fits; 0: not even one. Exact: the need never falls with the
/// batch.
Result<uint64_t> largest_batch_that_fits(const ModelShape& shape, TrainingSetup setup,
                                         uint64_t capacity_bytes);

}  // namespace gpumemprof
