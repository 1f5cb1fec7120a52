// gpumemprof._marks: what a recording cannot see from inside the allocator, for the recorded
// process. A library of its own, so that this process need not load the core. All of it in C++:
// between two instructions of the program no Python frame of ours may run, which torch.compile
// would trace, a debugger stop in, and another thread come in between of.
#include <Python.h>
#include <frameobject.h>

#include <cerrno>

#include "native/marks/calls.h"
#include "native/marks/dying.h"
#include "native/marks/frames.h"
#include "native/marks/malloc_figures.h"
#include "native/marks/names.h"
#include "native/marks/optimizers.h"
#include "native/marks/tensors.h"
#include "native/marks/text.h"
#include "native/marks/uncaught.h"
#include "native/marks/untraced.h"
#include "native/marks/walk.h"

using namespace gpumemprof::python;

namespace {

// Where nothing new is found, again and again, such as for modules of other threads, or where the
// program makes new modules all the time, the question is asked once a step.
constexpr int kMostInVain = 8, kMostCalls = 1000;

bool g_has_begun = false;
bool g_is_asked = false;
bool g_counts_steps = true;  // until the program says itself when one ends
int g_in_vain = 0, g_calls_made = 0;

/// Keeps what the program could see of a call as it was.
template <class Work>
void safely(Work work) {
  const int error = errno;
  try {
    work();
  } catch (...) {  // no memory: what was not told has no name
  }
  errno = error;
}

int on_new_module(void*);

void ask() {
  if (!g_has_begun || g_is_asked) return;
  g_is_asked = true;
  g_calls.when_module_is_new(on_new_module, nullptr);
}

/// Between two instructions of the main thread, maybe inside the program's own critical section.
int on_new_module(void*) {
  g_is_asked = false;
  g_calls_made += 1;
  safely([] {
    const Quiet quiet;
    g_in_vain = name_running_modules() ? 0 : g_in_vain + 1;
  });
  if (g_in_vain < kMostInVain && g_calls_made < kMostCalls) ask();
  return 0;
}

/// begin(torch.nn.Module, torch._C): has modules named from now on. False where it cannot be.
PyObject* begin(PyObject*, PyObject* arguments) {
  PyObject *type, *torch_c;
  if (!PyArg_ParseTuple(arguments, "O!O", &PyType_Type, &type, &torch_c)) return nullptr;
#ifdef Py_GIL_DISABLED
  Py_RETURN_FALSE;  // nothing here is safe without it
#else
  if (g_has_begun) Py_RETURN_TRUE;
  find_tensors(torch_c);  // without it modules have names all the same
  g_has_begun = begin_names(reinterpret_cast<PyTypeObject*>(type)) && begin_optimizers();
  if (!g_has_begun) PyErr_Clear();
  ask();
  return PyBool_FromLong(g_has_begun);
#endif
}

/// Whether the probe is there. The path: of the library where it is not preloaded, or None.
PyObject* find(PyObject*, PyObject* path) {
  const char* text = path == Py_None ? nullptr : PyUnicode_AsUTF8(path);
  if (!text && PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(find_calls(text));
}

/// Stands in for `__call__(optimizer, arguments, keyword arguments)`.
PyObject* after_optimizer(PyObject*, PyObject* arguments, PyObject*) {
  if (g_has_begun && PyTuple_GET_SIZE(arguments) > 0) {
    safely([&] {
      if (!optimizer_stepped(PyTuple_GET_ITEM(arguments, 0), g_counts_steps)) return;
      look_at_all();
      g_calls.step_end();
    });
    ask();
  }
  Py_RETURN_NONE;
}

/// hook_of(class): has what is called like a function of three arguments come here, and gives one
/// such object. The class's own `__call__`, which does nothing, is what torch.compile reads and
/// follows: so it finds nothing to do, and no reason to stop following.
PyObject* hook_of(PyObject*, PyObject* type) {
  if (!PyType_Check(type) ||
      !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE)) {
    PyErr_SetString(PyExc_TypeError, "a class is wanted");
    return nullptr;
  }
  reinterpret_cast<PyTypeObject*>(type)->tp_call = after_optimizer;
  return PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0);
}

PyObject* step(PyObject*, PyObject*) {
  g_counts_steps = false;
  if (g_has_begun) safely(look_at_all);
  g_calls.step_end();
  ask();
  Py_RETURN_NONE;
}

PyObject* phase_begin(PyObject*, PyObject* name) {
  uint64_t number = 0;
  safely([&] { number = g_calls.phase_begin(text_of(name, "?").c_str()); });
  return PyLong_FromUnsignedLongLong(number);
}

PyObject* phase_end(PyObject*, PyObject* phase) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(phase);
  if (PyErr_Occurred()) return nullptr;
  g_calls.phase_end(number);
  Py_RETURN_NONE;
}

PyObject* g_look = nullptr;

/// Between two instructions of the main thread. What the function gives is an exception of the
/// program's, from a handler of a signal that came meanwhile: it is raised where the program goes
/// on.
int on_look(void*) {
  const Untraced untraced;
  PyObject* error = PyObject_CallNoArgs(g_look);
  if (!error) PyErr_Clear();
  const bool is_raised = error && PyExceptionInstance_Check(error);
  if (is_raised) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(error));
    Py_INCREF(type);
    Py_INCREF(error);
    PyErr_Restore(type, error, PyException_GetTraceback(error));
  }
  Py_XDECREF(error);
  return is_raised ? -1 : 0;
}

/// look_after(events, call): has `call()` called once, after so many events of this process.
PyObject* look_after(PyObject*, PyObject* arguments) {
  unsigned long long events;
  PyObject* call;
  if (!PyArg_ParseTuple(arguments, "KO", &events, &call)) return nullptr;
  Py_INCREF(call);
  Py_XSETREF(g_look, call);
  g_calls.call_after(events, Py_AddPendingCall, on_look, nullptr);
  Py_RETURN_NONE;
}

/// instances(objects, type): those in a list that are of the type or of one below it, by the types
/// alone: no `__class__` or `__instancecheck__` of theirs is asked.
PyObject* instances(PyObject*, PyObject* arguments) {
  PyObject* objects;
  PyTypeObject* type;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &objects, &PyType_Type, &type)) {
    return nullptr;
  }
  PyObject* found = PyList_New(0);
  for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(objects); ++i) {
    PyObject* one = PyList_GET_ITEM(objects, i);
    if (PyType_IsSubtype(Py_TYPE(one), type) && PyList_Append(found, one) != 0) Py_CLEAR(found);
  }
  return found;
}

/// variables(frame): see frames.h.
PyObject* variables_of(PyObject*, PyObject* frame) {
  if (PyFrame_Check(frame)) return variables(reinterpret_cast<PyFrameObject*>(frame));
  PyErr_SetString(PyExc_TypeError, "variables() takes a frame");
  return nullptr;
}

/// program_ends(): its exit handlers run next.
PyObject* program_ends(PyObject*, PyObject*) {
  g_calls.program_ends();
  Py_RETURN_NONE;
}

/// blocks(): those made less those freed by the events that led to the last such call.
PyObject* blocks(PyObject*, PyObject*) { return PyLong_FromLongLong(g_calls.blocks_until_call()); }

/// watch_uncaught(call): see uncaught.h. False where it is done already, too.
PyObject* watch(PyObject*, PyObject* call) { return PyBool_FromLong(watch_uncaught(call)); }

/// In a forked child, which has a recording of its own.
PyObject* forked(PyObject*, PyObject*) {
  safely([] {
    const Quiet quiet;
    forget_names();
    forget_optimizers();
  });
  g_is_asked = false;
  g_in_vain = g_calls_made = 0;
  ask();
  Py_RETURN_NONE;
}

PyMethodDef g_methods[] = {
    {"find", find, METH_O, nullptr},
    {"begin", begin, METH_VARARGS, nullptr},
    {"hook_of", hook_of, METH_O, nullptr},
    {"step", step, METH_NOARGS, nullptr},
    {"phase_begin", phase_begin, METH_O, nullptr},
    {"phase_end", phase_end, METH_O, nullptr},
    {"look_after", look_after, METH_VARARGS, nullptr},
    {"blocks", blocks, METH_NOARGS, nullptr},
    {"program_ends", program_ends, METH_NOARGS, nullptr},
    {"instances", instances, METH_VARARGS, nullptr},
    {"variables", variables_of, METH_O, nullptr},
    {"walker", walker, METH_VARARGS, nullptr},
    {"walk", walk, METH_VARARGS, nullptr},
    {"way", way, METH_VARARGS, nullptr},
    {"watch_uncaught", watch, METH_O, nullptr},
    {"forked", forked, METH_NOARGS, nullptr},
    {"malloc_figures", malloc_figures, METH_NOARGS, nullptr},
    {"python_arenas", python_arenas, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef g_definition = {
    PyModuleDef_HEAD_INIT, "_marks", nullptr, -1, g_methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__marks() { return PyModule_Create(&g_definition); }
