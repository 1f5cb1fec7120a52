// Models that no frame of the calling thread shows: those that other threads call.
#pragma once

#include <Python.h>

#include <vector>

namespace gpumemprof::python {

/// Instances of `type` that the program's own modules and the calling thread's variables lead to,
/// the nearest first; what is below one of them is not looked for. New references: the caller gives
/// them back. Looks at kMostObjects at most, under the GIL, and runs no Python code.
std::vector<PyObject*> instances_in_reach(PyTypeObject* type);
inline constexpr size_t kMostObjects = 50'000;  // about 5 ms

}  // namespace gpumemprof::python
