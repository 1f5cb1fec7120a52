// The state of one of TensorFlow's pools, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "readers/bfc_pool.h"

namespace gpumemprof {

/// `pool` of the schemas "gpumemprof.oom_message/1" and "gpumemprof.analysis/1". Of chunks by size
/// and by operation the 1,000 with the most bytes.
nlohmann::ordered_json pool_json(const BfcPool& pool);

}  // namespace gpumemprof
