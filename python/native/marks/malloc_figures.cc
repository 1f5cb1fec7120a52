#include "native/marks/malloc_figures.h"

#include <dlfcn.h>

#include "native/marks/calls.h"

namespace gpumemprof::python {
namespace {

/// struct mallinfo2, which older headers do not have.
struct MallocInfo {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

}  // namespace

PyObject* malloc_figures(PyObject*, PyObject*) {
  static const auto ask = reinterpret_cast<MallocInfo (*)()>(dlsym(RTLD_DEFAULT, "mallinfo2"));
  if (ask == nullptr) Py_RETURN_NONE;
  const MallocInfo info = ask();
  // What is mapped for large blocks is beside the arenas, and all of it in use.
  return Py_BuildValue("KK", static_cast<unsigned long long>(info.uordblks + info.hblkhd),
                       static_cast<unsigned long long>(info.fordblks));
}

PyObject* python_arenas(PyObject*, PyObject*) {
  const char* why = "";
  const int64_t size_bytes = g_calls.python_arenas(&why);
  return size_bytes < 0 ? PyUnicode_FromString(why) : PyLong_FromLongLong(size_bytes);
}

}  // namespace gpumemprof::python
