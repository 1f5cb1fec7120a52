// What arrays take by their descriptors: an estimate, as only the driver knows how they are padded.
#pragma once

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

struct ArrayShape {
  size_t width, height, depth;  // in elements; a height or depth of 0 is none
  unsigned flags;
  unsigned levels;
  unsigned element_bits;  // 0: not known
};

/// Of a format whose size is not known nothing can be said but that the array is there: it counts
/// as no bytes, and as a loss.
void took_array(Watch& watch, Result code, const Pointer* out, const ArrayShape& shape);

}  // namespace gpumemprof::driver_proxy
