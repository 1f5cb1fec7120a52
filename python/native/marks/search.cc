#include "native/marks/search.h"

#include <frameobject.h>

#include <cstring>
#include <unordered_set>

#include "native/marks/frames.h"

namespace gpumemprof::python {
namespace {

/// Breadth first. What is looked at belongs to others, and nothing that could free it runs.
class Search {
 public:
  explicit Search(PyTypeObject* type) : type_(type) {}

  void run() {
    for (; next_ < queue_.size() && seen_.size() < kMostObjects; ++next_) {
      PyObject* object = queue_[next_];
      // A function leads to all of its module; what it keeps itself is in its closure.
      if (PyFunction_Check(object)) {
        add(PyFunction_GetClosure(object));
      } else if (PyObject_IS_GC(object) && Py_TYPE(object)->tp_traverse) {
        Py_TYPE(object)->tp_traverse(object, visit, this);
      }
    }
  }

  void add(PyObject* object) {
    if (!object || PyType_Check(object) || PyModule_Check(object)) return;
    if (!PyObject_IS_GC(object) || seen_.size() >= kMostObjects) return;
    if (!seen_.insert(object).second) return;
    if (PyObject_TypeCheck(object, type_)) {
      Py_INCREF(object);
      found_.push_back(object);
    } else {
      queue_.push_back(object);
    }
  }

  std::vector<PyObject*> take() { return std::move(found_); }

 private:
  /// Of tp_traverse, which is C: nothing may be thrown through it.
  static int visit(PyObject* object, void* self) {
    try {
      static_cast<Search*>(self)->add(object);
      return 0;
    } catch (...) {
      return -1;
    }
  }

  PyTypeObject* type_;
  std::unordered_set<PyObject*> seen_;
  std::vector<PyObject*> queue_, found_;
  size_t next_ = 0;
};

/// Not of the standard library, and not installed.
bool is_own_module(PyObject* module) {
  PyObject* dict = PyModule_GetDict(module);
  PyObject* file = dict ? PyDict_GetItemString(dict, "__file__") : nullptr;
  const char* path = file && PyUnicode_CheckExact(file) ? PyUnicode_AsUTF8(file) : nullptr;
  if (!path) {
    PyErr_Clear();
    return false;
  }
  return !strstr(path, "/site-packages/") && !strstr(path, "/dist-packages/") &&
         !strstr(path, "/lib/python");
}

void add_modules(Search* search) {
  PyObject *modules = PyImport_GetModuleDict(), *name, *module;
  Py_ssize_t at = 0;
  while (PyDict_Next(modules, &at, &name, &module)) {
    if (!PyModule_Check(module)) continue;
    const bool is_main = PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__main__") == 0;
    if (is_main || is_own_module(module)) search->add(PyModule_GetDict(module));
  }
}

}  // namespace

std::vector<PyObject*> instances_in_reach(PyTypeObject* type) {
  Search search(type);
  add_modules(&search);
  // As long as the lists live, so do the variables in them.
  std::vector<PyObject*> lists;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    if (PyObject* list = variables(frame)) {
      lists.push_back(list);
      search.add(list);
    } else {
      PyErr_Clear();
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  search.run();
  for (PyObject* list : lists) Py_DECREF(list);
  return search.take();
}

}  // namespace gpumemprof::python
