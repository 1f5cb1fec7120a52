// What glibc's malloc says of itself, and the probe of Python's arenas.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// malloc_figures(): (bytes in use, bytes free and kept), or None where this malloc does not tell,
/// as before glibc 2.33. Takes malloc's locks, one after the other, as malloc() does: never from a
/// signal's handler. Small free blocks that threads keep for themselves count as in use.
PyObject* malloc_figures(PyObject*, PyObject*);

/// python_arenas(): their bytes, or why that is not known.
PyObject* python_arenas(PyObject*, PyObject*);

}  // namespace gpumemprof::python
