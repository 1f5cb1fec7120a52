#include "native/marks/dying.h"

#include <unordered_map>

namespace gpumemprof::python {
namespace {

struct Watched {
  PyObject* weakref;
  void (*call)(void*);
};
// By address of the object, and the object by that of its weak reference. Never freed: objects die
// after static variables.
std::unordered_map<PyObject*, Watched>& watched() {
  static auto* map = new std::unordered_map<PyObject*, Watched>;
  return *map;
}
std::unordered_map<PyObject*, PyObject*>& object_of() {
  static auto* map = new std::unordered_map<PyObject*, PyObject*>;
  return *map;
}

/// What the interpreter calls: a function in C, so no frame of ours comes into the program.
PyObject* on_death(PyObject*, PyObject* weakref) {
  const auto at = object_of().find(weakref);
  if (at != object_of().end()) {
    PyObject* object = at->second;
    object_of().erase(at);
    const auto entry = watched().find(object);
    if (entry != watched().end()) {
      auto call = entry->second.call;
      watched().erase(entry);
      call(object);
      Py_DECREF(weakref);
    }
  }
  Py_RETURN_NONE;
}

PyMethodDef g_on_death = {"on_death", on_death, METH_O, nullptr};

PyObject* callback() {
  static PyObject* function = PyCFunction_New(&g_on_death, nullptr);
  return function;
}

}  // namespace

bool watch_death(PyObject* object, void (*call)(void*)) {
  if (watched().contains(object)) return true;
  PyObject* function = callback();
  PyObject* weakref = function ? PyWeakref_NewRef(object, function) : nullptr;
  if (!weakref) {
    PyErr_Clear();
    return false;
  }
  watched().emplace(object, Watched{weakref, call});
  object_of().emplace(weakref, object);
  return true;
}

void forget_death(PyObject* object) {
  const auto entry = watched().find(object);
  if (entry == watched().end()) return;
  object_of().erase(entry->second.weakref);
  Py_DECREF(entry->second.weakref);
  watched().erase(entry);
}

}  // namespace gpumemprof::python
