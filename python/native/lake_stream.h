// A table of a lake through the Arrow C stream interface, a batch at a time.
#pragma once

#include <functional>
#include <memory>

#include "lake/batch.h"
#include "native/arrow_stream.h"

namespace gpumemprof::python {

/// Takes the rows over. `owner` is kept until the stream is released: what the rows read lives as
/// long. Any thread may read it, one at a time, without the GIL.
void fill_lake_stream(std::unique_ptr<LakeRows> rows, std::shared_ptr<const void> owner,
                      ArrowArrayStream* stream);

}  // namespace gpumemprof::python
