// What optimizers keep: told to the probe when the set changes, after a look of a few loads at each
// step that sees whether it has.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// False without memory.
bool begin_optimizers();

/// The optimizer has stepped. Whether a step of the program ends here, which is never where
/// `counts_steps` is false; else tells the gradients, and the parameters and its state where they
/// are not those of before.
bool optimizer_stepped(PyObject* optimizer, bool counts_steps);

/// A step of the program ends: tells what has become a parameter, buffer, gradient or state of an
/// optimizer, takes back what no longer is, and says that the rest holds.
void look_at_all();

/// In a forked child.
void forget_optimizers();

}  // namespace gpumemprof::python
