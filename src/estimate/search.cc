#include "estimate/search.h"

#include <algorithm>

namespace gpumemprof {

uint64_t largest_batch_that(absl::FunctionRef<bool(uint64_t)> fits, uint64_t most) {
  uint64_t good = 0, bad = 1;
  while (bad <= most && fits(bad)) {
    good = bad;
    bad = std::min(2 * bad, most + 1);
    if (good == most) return most;
  }
  while (bad - good > 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace gpumemprof
