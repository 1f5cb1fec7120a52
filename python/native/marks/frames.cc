#include "native/marks/frames.h"

#include <frameobject.h>

#include <algorithm>

// Python 3.11 has no call that reads one variable of a frame; its own headers say where they are.
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif

namespace gpumemprof::python {
namespace {

constexpr int kMostFrames = 1000;  // of a deep recursion the innermost

/// Adds what is there; false where memory ran out.
bool add(PyObject* list, PyObject* name, PyObject* value) {
  if (!value) return true;
  PyObject* pair = PyTuple_Pack(2, name, value);
  const bool is_added = pair && PyList_Append(list, pair) == 0;
  Py_XDECREF(pair);
  return is_added;
}

#if PY_VERSION_HEX >= 0x030C0000

/// New reference; null where it has none yet, or no more.
PyObject* value_of(PyFrameObject* frame, PyObject* name) {
  PyObject* value = PyFrame_GetVar(frame, name);
  if (!value) PyErr_Clear();
  return value;
}

PyObject* first_argument(PyFrameObject* frame, PyCodeObject* code) {
  PyObject* names = PyCode_GetVarnames(code);
  if (!names) PyErr_Clear();
  const bool has_one = names && PyTuple_GET_SIZE(names) > 0;
  PyObject* value = has_one ? value_of(frame, PyTuple_GET_ITEM(names, 0)) : nullptr;
  Py_XDECREF(names);
  return value;
}

/// Takes over `names`, a tuple or null.
bool add_all(PyObject* list, PyFrameObject* frame, PyObject* names) {
  bool is_whole = names != nullptr;
  for (Py_ssize_t i = 0; is_whole && i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* value = value_of(frame, PyTuple_GET_ITEM(names, i));
    is_whole = add(list, PyTuple_GET_ITEM(names, i), value);
    Py_XDECREF(value);
  }
  Py_XDECREF(names);
  return is_whole;
}

bool add_variables(PyObject* list, PyFrameObject* frame, PyCodeObject* code) {
  return add_all(list, frame, PyCode_GetVarnames(code)) &&
         add_all(list, frame, PyCode_GetCellvars(code)) &&
         add_all(list, frame, PyCode_GetFreevars(code));
}

#else

/// The argument in its cell, where an inner function uses it too. New reference or null.
PyObject* in_cell(PyObject* value) {
  if (value && PyCell_Check(value)) value = PyCell_GET(value);
  Py_XINCREF(value);
  return value;
}

#if PY_VERSION_HEX >= 0x030B0000

PyObject* first_argument(PyFrameObject* frame, PyCodeObject*) {
  return in_cell(frame->f_frame->localsplus[0]);
}

bool add_variables(PyObject* list, PyFrameObject* frame, PyCodeObject* code) {
  for (int i = 0; i < code->co_nlocalsplus; ++i) {
    PyObject* value = frame->f_frame->localsplus[i];
    const auto kind = _PyLocals_GetKind(code->co_localspluskinds, i);
    if (value && (kind & (CO_FAST_CELL | CO_FAST_FREE)) && PyCell_Check(value))
      value = PyCell_GET(value);
    if (!add(list, PyTuple_GET_ITEM(code->co_localsplusnames, i), value)) return false;
  }
  return true;
}

#else

PyObject* first_argument(PyFrameObject* frame, PyCodeObject* code) {
  PyObject* value = frame->f_localsplus[0];
  if (!value && code->co_cell2arg) {  // it has been moved into its cell
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_cellvars); ++i) {
      if (code->co_cell2arg[i] == 0) value = frame->f_localsplus[code->co_nlocals + i];
    }
  }
  return in_cell(value);
}

bool add_variables(PyObject* list, PyFrameObject* frame, PyCodeObject* code) {
  PyObject** value = frame->f_localsplus;
  for (int i = 0; i < code->co_nlocals; ++i) {
    if (!add(list, PyTuple_GET_ITEM(code->co_varnames, i), *value++)) return false;
  }
  for (PyObject* names : {code->co_cellvars, code->co_freevars}) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i, ++value) {
      PyObject* held = *value && PyCell_Check(*value) ? PyCell_GET(*value) : nullptr;
      if (!add(list, PyTuple_GET_ITEM(names, i), held)) return false;
    }
  }
  return true;
}

#endif
#endif

}  // namespace

std::vector<PyObject*> first_arguments(PyTypeObject* type) {
  std::vector<PyObject*> found;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (int i = 0; frame && i < kMostFrames; ++i) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (code->co_argcount > 0) {
      PyObject* value = first_argument(frame, code);
      if (value && PyObject_TypeCheck(value, type) &&
          std::find(found.begin(), found.end(), value) == found.end()) {
        found.push_back(value);
      } else {
        Py_XDECREF(value);
      }
    }
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  std::reverse(found.begin(), found.end());
  return found;
}

PyObject* variables(PyFrameObject* frame) {
  PyObject* list = PyList_New(0);
  if (!list) return nullptr;
  PyCodeObject* code = PyFrame_GetCode(frame);
  const bool is_whole = add_variables(list, frame, code);
  Py_DECREF(code);
  if (!is_whole) Py_CLEAR(list);
  return list;
}

}  // namespace gpumemprof::python
