// Is told when an object dies, by a weak reference: nothing is kept alive.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// Calls `call(object)` while `object` dies; only its address is of use then. Once more for the
/// same object changes nothing. False where its class allows no weak reference.
bool watch_death(PyObject* object, void (*call)(void*));

/// Takes it back.
void forget_death(PyObject* object);

}  // namespace gpumemprof::python
