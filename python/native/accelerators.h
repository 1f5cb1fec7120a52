// The accelerators of this machine for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// Adds `accelerators` and `device_memory` to the module.
void add_accelerators(nanobind::module_& module);

}  // namespace gpumemprof::python
