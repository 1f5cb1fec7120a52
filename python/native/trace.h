// A snapshot or a recording for Python: what gpumemprof.load() gives.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// Adds load_trace and the class Trace to the module; python/gpumemprof/trace.py is their face.
void bind_trace(nanobind::module_& module);

}  // namespace gpumemprof::python
