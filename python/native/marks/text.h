// Python's strings as the probe takes them: up to the first NUL.
#pragma once

#include <Python.h>

#include <algorithm>
#include <string>

namespace gpumemprof::python {

/// The string with '?' for NUL; `otherwise` for what is no string, or none that UTF-8 can hold.
inline std::string text_of(PyObject* string, const char* otherwise) {
  Py_ssize_t size = 0;
  const char* data =
      string && PyUnicode_Check(string) ? PyUnicode_AsUTF8AndSize(string, &size) : nullptr;
  if (!data) {
    PyErr_Clear();
    return otherwise;
  }
  std::string text(data, static_cast<size_t>(size));
  std::ranges::replace(text, '\0', '?');
  return text;
}

}  // namespace gpumemprof::python
