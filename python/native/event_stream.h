// All events of a source as an Arrow table of one batch.
#pragma once

#include <memory>

#include "native/arrow_stream.h"
#include "native/columns.h"

namespace gpumemprof::python {

/// A column for each member of Columns. `action`, `device` and `stream` are dictionaries of their
/// names or numbers. The values are those of `columns`, which is kept until every part has been
/// released; only the bits that say what is null are made here. Null is what is not known: see
/// is_known() in the source.
std::unique_ptr<ArrowTable> arrow_of_events(std::shared_ptr<const Columns> columns);

}  // namespace gpumemprof::python
