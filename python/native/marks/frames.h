// The modules whose methods run on the calling thread, from its frames.
#pragma once

#include <Python.h>

#include <vector>

namespace gpumemprof::python {

/// The first argument of every frame of the thread that is an instance of `type`, the outermost
/// first, each once. New references: the caller gives them back. Runs no Python code and makes no
/// dictionary of a frame's variables, which would keep them alive.
std::vector<PyObject*> first_arguments(PyTypeObject* type);

}  // namespace gpumemprof::python
