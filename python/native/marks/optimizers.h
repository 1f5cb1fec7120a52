// What optimizers keep: told to the probe when the set changes, after a look of a few loads at each
// step that sees whether it has.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// False without memory.
bool begin_optimizers();

/// The optimizer has stepped: tells its parameters, their gradients and its state where they are
/// not those of before. Whether a step of the program ends here.
bool optimizer_stepped(PyObject* optimizer);

/// In a forked child.
void forget_optimizers();

}  // namespace gpumemprof::python
