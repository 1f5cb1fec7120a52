// The largest batch that fits.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>

namespace gpumemprof {

/// Batches are tried in powers of two, then by halving the gap: some 2·log2 of the answer. 0: not
/// even one fits; `most`: it does too. Right where whatever is below a batch that fits fits too.
uint64_t largest_batch_that(absl::FunctionRef<bool(uint64_t)> fits, uint64_t most);

}  // namespace gpumemprof
