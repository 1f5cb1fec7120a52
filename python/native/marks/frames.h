// What the frames of running functions hold. Nothing here asks for `f_locals`: up to Python 3.12
// that is one dictionary a frame, which a debugger's trace function and torch.compile are in the
// middle of using, and whose content the interpreter writes back into the function.
#pragma once

#include <Python.h>

#include <vector>

namespace gpumemprof::python {

/// The first argument of every frame of the thread that is an instance of `type`, the outermost
/// first, each once. New references: the caller gives them back. Runs no Python code and makes no
/// dictionary of a frame's variables, which would keep them alive.
std::vector<PyObject*> first_arguments(PyTypeObject* type);

/// [(name, value)] of a function's frame as a new list: arguments, locals, and what its cells hold.
/// What has no value is left out; an argument that an inner function uses may be there twice. Null
/// with an exception set where memory ran out.
PyObject* variables(PyFrameObject* frame);

}  // namespace gpumemprof::python
