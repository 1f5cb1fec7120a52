// Exceptions that nobody caught, as the interpreter is about to print them.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// Has `call(error, thread or None)` called for each instance of Exception, before Python's own
/// function prints it. `sys.excepthook` and `threading.excepthook` stay the objects that they are,
/// and a program that has put its own in their place has that called: where it does not go on to
/// Python's, `call` is not called. False where these functions are not what they are known to be.
bool watch_uncaught(PyObject* call);

}  // namespace gpumemprof::python
