#include "native/marks/uncaught.h"

#include "native/marks/tensors.h"
#include "native/marks/untraced.h"

namespace gpumemprof::python {
namespace {

PyObject* g_call = nullptr;  // kept for the life of the process

/// A function in C of Python's, whose calls come to us first.
struct Taken {
  PyMethodDef ours;
  PyCFunction original = nullptr;
};
Taken g_main, g_thread;

void look(PyObject* error, PyObject* thread) {
  // What is no Exception ends a program as it asked for: Ctrl-C by SIGINT, which CPython forgets
  // where code is compiled meanwhile.
  if (!PyType_IsSubtype(Py_TYPE(error), reinterpret_cast<PyTypeObject*>(PyExc_Exception))) return;
  const Quiet quiet;
  const Untraced untraced;
  Py_XDECREF(PyObject_CallFunctionObjArgs(g_call, error, thread, nullptr));
  PyErr_Clear();
}

PyObject* in_main(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 3) look(arguments[1], Py_None);
  return reinterpret_cast<_PyCFunctionFast>(reinterpret_cast<void (*)()>(g_main.original))(
      self, arguments, count);
}

/// Of (type, exception, traceback, thread).
PyObject* in_thread(PyObject* self, PyObject* arguments) {
  if (PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) >= 4)
    look(PyTuple_GET_ITEM(arguments, 1), PyTuple_GET_ITEM(arguments, 3));
  return g_thread.original(self, arguments);
}

PyCFunctionObject* function(const char* module, const char* name, int flags) {
  PyObject* found = PyImport_ImportModule(module);
  PyObject* function = found ? PyObject_GetAttrString(found, name) : nullptr;
  Py_XDECREF(found);
  if (!function) PyErr_Clear();
  const bool is_known = function && Py_IS_TYPE(function, &PyCFunction_Type) &&
                        PyCFunction_GET_FLAGS(function) == flags;
  if (!is_known) Py_CLEAR(function);
  return reinterpret_cast<PyCFunctionObject*>(function);
}

void take(PyCFunctionObject* function, PyCFunction call, Taken* taken) {
  taken->ours = *function->m_ml;  // its name, flags and text
  taken->original = taken->ours.ml_meth;
  taken->ours.ml_meth = call;
  function->m_ml = &taken->ours;
}

}  // namespace

bool watch_uncaught(PyObject* call) {
  if (g_call) return false;
  PyCFunctionObject* main = function("sys", "__excepthook__", METH_FASTCALL);
  PyCFunctionObject* thread = main ? function("_thread", "_excepthook", METH_O) : nullptr;
  if (thread) {
    Py_INCREF(call);
    g_call = call;
    take(main, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_main)), &g_main);
    take(thread, in_thread, &g_thread);
  }
  Py_XDECREF(main);
  Py_XDECREF(thread);
  return thread != nullptr;
}

}  // namespace gpumemprof::python
