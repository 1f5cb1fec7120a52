// One question about a configuration, answered whole: the prediction, other settings, the largest
// batch, where it fits.
#pragma once

#include <absl/functional/function_ref.h>
#include <cstdint>
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

/// Batches are tried in powers of two, then by halving the gap: some 2·log2 of the answer. 0: not
/// even one fits; `most`: it does too. Right where whatever is below a batch that fits fits too.
uint64_t largest_batch_that(absl::FunctionRef<bool(uint64_t)> fits, uint64_t most);

}  // namespace gpumemprof
