// The size of arrays by their descriptors: an estimate, because only the driver knows the padding.
#pragma once

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

struct ArrayShape {
  size_t width, height, depth;  // in elements; a height or depth of 0 is none
  unsigned flags;
  unsigned levels;
  unsigned element_bits;  // 0: not known
};

/// An array of a format of unknown size counts as no bytes and as a loss.
void took_array(Watch& watch, Result code, const Pointer* out, const ArrayShape& shape);

}  // namespace gpumemprof::driver_proxy
