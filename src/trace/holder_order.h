// The order of every list of holders.
#pragma once

#include "trace/live_state.h"

namespace gpumemprof {

/// Largest first; of equals, the lower id.
inline bool comes_first(const Holder& a, const Holder& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
}

}  // namespace gpumemprof
