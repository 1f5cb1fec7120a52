// A run as the tables of a lake, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// Adds read_run and the class LakeRun; python/gpumemprof/_lake is their face.
void bind_lake(nanobind::module_& module);

}  // namespace gpumemprof::python
