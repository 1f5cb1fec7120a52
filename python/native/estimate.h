// The closed form over a configuration for Python; gpumemprof.estimate_config is its face.
#pragma once

#include <nanobind/nanobind.h>

namespace gpumemprof::python {

/// Adds estimate_config to the module.
void bind_estimate(nanobind::module_& module);

}  // namespace gpumemprof::python
