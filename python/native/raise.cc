#include "native/raise.h"

#include <nanobind/nanobind.h>

#include "report/words.h"

namespace gpumemprof::python {

void raise(const Error& error, const std::string& subject) {
  std::string text;
  if (!subject.empty() && !error.message.contains(subject)) text = subject + ": ";
  text += error.message;
  if (error.offset) text += " (at byte " + std::to_string(*error.offset) + ")";
  PyObject* type = PyExc_ValueError;
  if (error.code == ErrorCode::kNotFound) type = PyExc_FileNotFoundError;
  if (error.code == ErrorCode::kSystem) type = PyExc_OSError;
  PyErr_SetString(type, printable(text).c_str());  // a file's own words may be anything
  throw nanobind::python_error();
}

}  // namespace gpumemprof::python
