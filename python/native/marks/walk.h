// The shortest ways from the names of a program to its tensors. No code of the program runs: only
// tp_traverse is called, as the collector does, and NumPy's own arrays are asked for their base.
//
// Every object on the way is held until the walk is gone: between two of them other threads run.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// walker(kind, skipped, dropped, stops, follows): a walk that knows `stops`, a list of objects, already.
/// It looks for objects of the type `kind`. It passes over what is exactly of a type in the tuple
/// `skipped`, or of one in `dropped` or below it, and classes of which `follows(class)` is false.
PyObject* walker(PyObject*, PyObject* arguments);

/// walk(walker, roots, deadline_s): goes on from the objects in a list, past those of the last call,
/// to all that they lead to.
/// False where the thread's CPU time passed the deadline (time.thread_time()) before the end.
PyObject* walk(PyObject*, PyObject* arguments);

/// way(walker, object): None for an object that was not reached, else the index of the root and
/// the list of the objects from that root to this one.
PyObject* way(PyObject*, PyObject* arguments);

}  // namespace gpumemprof::python
