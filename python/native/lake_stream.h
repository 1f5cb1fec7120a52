// A table of a lake as an Arrow table.
#pragma once

#include <memory>

#include "lake/batch.h"
#include "native/arrow_stream.h"

namespace gpumemprof::python {

/// `owner` is kept with it: what the rows read lives as long.
std::unique_ptr<ArrowTable> arrow_of_lake(std::unique_ptr<LakeRows> rows,
                                          std::shared_ptr<const void> owner);

}  // namespace gpumemprof::python
