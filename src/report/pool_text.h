// The state of one of TensorFlow's pools, for people.
#pragma once

#include <string>

#include "readers/bfc_pool.h"

namespace gpumemprof {

/// Lines with a title; safe for a terminal whatever the names are.
std::string pool_text(const BfcPool& pool, bool color);

}  // namespace gpumemprof
