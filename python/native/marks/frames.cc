#include "native/marks/frames.h"

#include <frameobject.h>

#include <algorithm>

// Python 3.11 has no call that reads one variable of a frame; its own header says where they are.
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#endif

namespace gpumemprof::python {
namespace {

constexpr int kMostFrames = 1000;  // of a deep recursion the innermost

#if PY_VERSION_HEX >= 0x030C0000

PyObject* first_argument(PyFrameObject* frame, PyCodeObject* code) {
  PyObject* names = PyCode_GetVarnames(code);
  PyObject* value = nullptr;
  if (names && PyTuple_GET_SIZE(names) > 0)
    value = PyFrame_GetVar(frame, PyTuple_GET_ITEM(names, 0));
  Py_XDECREF(names);
  if (!value) PyErr_Clear();
  return value;
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

}  // namespace gpumemprof::python
