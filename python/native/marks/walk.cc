#include "native/marks/walk.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpumemprof::python {
namespace {

constexpr char kName[] = "gpumemprof walk";
constexpr uint32_t kRoot = UINT32_MAX;
// Other threads wait for the interpreter's lock meanwhile: Python's own switch interval.
constexpr double kTurnS = 0.005;
constexpr size_t kBetweenClocks = 1024;

double thread_time_s() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Addresses, in a table that is at least half empty: one allocation for all of them.
class Seen {
 public:
  /// False where it was there.
  bool insert(const void* object) {
    if (count_ * 2 >= slots_.size()) grow();
    const void*& slot = find(object);
    if (slot == object) return false;
    slot = object, count_ += 1;
    return true;
  }

 private:
  const void*& find(const void* object) {
    const uint64_t hash = reinterpret_cast<uint64_t>(object) * 0x9E3779B97F4A7C15u;
    size_t at = hash >> 32 & (slots_.size() - 1);
    while (slots_[at] && slots_[at] != object) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    std::vector<const void*> old(slots_.size() * 2);
    old.swap(slots_);
    for (const void* one : old)
      if (one) find(one) = one;
  }

  std::vector<const void*> slots_ = std::vector<const void*>(1 << 12);  // a power of two, never full
  size_t count_ = 0;
};

struct Step {
  PyObject* value;  // owned
  uint32_t before;  // index of the step that led to it; kRoot
  uint32_t root;
};

class Walker {
 public:
  Walker(PyTypeObject* kind, PyObject* skipped, PyObject* dropped, PyObject* follows)
      : kind_(kind), skipped_(skipped), dropped_(dropped), follows_(follows) {
    for (PyObject* one : owned()) Py_INCREF(one);
  }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;
  ~Walker() {
    for (const Step& step : steps_) Py_DECREF(step.value);
    for (PyObject* object : new_) Py_XDECREF(object);
    for (PyObject* one : owned()) Py_DECREF(one);
  }

  void know(PyObject* object) { seen_.insert(object); }

  /// 1: all was walked; 0: the time ran out; -1: an exception is set.
  int walk(PyObject* roots, double deadline_s) {
    for (; roots_ < PyList_GET_SIZE(roots); ++roots_) {
      visit(PyList_GET_ITEM(roots, roots_), this);
      if (!take_new(kRoot, static_cast<uint32_t>(roots_))) return -1;
    }
    double turn_s = thread_time_s();
    for (; next_ < steps_.size(); ++next_) {
      if (next_ % kBetweenClocks == 0) {
        const double now_s = thread_time_s();
        if (now_s > deadline_s) return 0;
        if (now_s - turn_s > kTurnS) {
          Py_BEGIN_ALLOW_THREADS  // braces of its own
          Py_END_ALLOW_THREADS
          turn_s = now_s;
        }
      }
      PyObject* value = steps_[next_].value;
      find_base(value);
      if (!find_referents(value) || !take_new(static_cast<uint32_t>(next_), steps_[next_].root))
        return -1;
    }
    return 1;
  }

  PyObject* way(PyObject* object) const {
    const auto found = found_.find(object);
    if (found == found_.end()) Py_RETURN_NONE;
    PyObject* list = PyList_New(0);
    for (uint32_t at = found->second; list && at != kRoot; at = steps_[at].before)
      if (PyList_Append(list, steps_[at].value) != 0) Py_CLEAR(list);
    if (!list || PyList_Reverse(list) != 0) {
      Py_XDECREF(list);
      return nullptr;
    }
    return Py_BuildValue("IN", steps_[found->second].root, list);
  }

 private:
  std::array<PyObject*, 4> owned() const {
    return {reinterpret_cast<PyObject*>(kind_), skipped_, dropped_, follows_};
  }

  /// Of tp_traverse, which is C: nothing else may run in it, and nothing be thrown through it.
  static int visit(PyObject* object, void* self) {
    auto* walker = static_cast<Walker*>(self);
    try {
      walker->look_at(object);
      return 0;
    } catch (...) {
      walker->lacks_memory_ = true;
      return -1;
    }
  }

  void look_at(PyObject* object) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(skipped_); ++i)
      if (type == PyTuple_GET_ITEM(skipped_, i)) return;
    if (!seen_.insert(object)) return;
    new_.push_back(object);
    Py_INCREF(object);
  }

#ifdef Py_GIL_DISABLED
  /// Other threads change what is traversed: gc stops them for each.
  bool find_referents(PyObject* value) {
    PyObject* gc = PyImport_ImportModule("gc");
    PyObject* list = gc ? PyObject_CallMethod(gc, "get_referents", "O", value) : nullptr;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); ++i) visit(PyList_GET_ITEM(list, i), this);
    const bool is_known = list != nullptr;
    Py_XDECREF(list);
    Py_XDECREF(gc);
    return is_known;
  }
#else
  bool find_referents(PyObject* value) {
    const traverseproc traverse = Py_TYPE(value)->tp_traverse;
    if (traverse && PyObject_IS_GC(value)) traverse(value, visit, this);
    return true;
  }
#endif

  /// An array of NumPy tells the collector nothing of the object whose memory it shows, such as a
  /// tensor. Of a class below it that may be code of the program.
  void find_base(PyObject* value) {
    if (std::strcmp(Py_TYPE(value)->tp_name, "numpy.ndarray") != 0) return;
    PyObject* base = PyObject_GetAttrString(value, "base");
    if (!base) return PyErr_Clear();
    visit(base, this);
    Py_DECREF(base);
  }

  /// Keeps those of `new_` that the walk goes on with. False: an exception is set.
  bool take_new(uint32_t before, uint32_t root) {
    if (lacks_memory_) throw std::bad_alloc();
    for (PyObject*& object : new_) {
      const int is_kept = keeps(object);
      if (is_kept < 0) return false;
      if (is_kept == 0) {
        Py_CLEAR(object);
        continue;
      }
      steps_.push_back({object, before, root});
      PyObject* kept = std::exchange(object, nullptr);
      if (PyType_IsSubtype(Py_TYPE(kept), kind_))
        found_.emplace(kept, static_cast<uint32_t>(steps_.size() - 1));
    }
    new_.clear();
    return true;
  }

  int keeps(PyObject* object) const {
    PyTypeObject* type = Py_TYPE(object);
    if (PyType_IsSubtype(type, kind_)) return 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dropped_); ++i)
      if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(dropped_, i)))) return 0;
    if (!PyType_Check(object)) return 1;
    PyObject* answer = PyObject_CallFunctionObjArgs(follows_, object, nullptr);
    const int is_kept = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_kept;
  }

  PyTypeObject* kind_;  // this and the next three: owned
  PyObject *skipped_, *dropped_, *follows_;
  Seen seen_;
  std::vector<Step> steps_;      // in the order in which they were reached: the queue, too
  std::vector<PyObject*> new_;   // owned; of the step that is looked at
  bool lacks_memory_ = false;
  std::unordered_map<PyObject*, uint32_t> found_;  // index of the step
  size_t next_ = 0;
  Py_ssize_t roots_ = 0;
};

Walker* walker_of(PyObject* capsule) {
  return static_cast<Walker*>(PyCapsule_GetPointer(capsule, kName));
}

/// Work, in which memory may run out.
template <class Work>
PyObject* or_no_memory(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

bool are_types(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!PyType_Check(PyTuple_GET_ITEM(tuple, i))) return false;
  return true;
}

}  // namespace

PyObject* walker(PyObject*, PyObject* arguments) {
  PyObject *kind, *skipped, *dropped, *stops, *follows;
  if (!PyArg_ParseTuple(arguments, "O!O!O!O!O", &PyType_Type, &kind, &PyTuple_Type, &skipped, &PyTuple_Type,
                        &dropped, &PyList_Type, &stops, &follows))
    return nullptr;
  if (!are_types(skipped) || !are_types(dropped)) {
    PyErr_SetString(PyExc_TypeError, "walker() takes tuples of types");
    return nullptr;
  }
  return or_no_memory([&]() -> PyObject* {
    auto* made = new Walker(reinterpret_cast<PyTypeObject*>(kind), skipped, dropped, follows);
    PyObject* capsule = PyCapsule_New(made, kName, [](PyObject* self) { delete walker_of(self); });
    if (!capsule) {
      delete made;
      return nullptr;
    }
    try {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stops); ++i) made->know(PyList_GET_ITEM(stops, i));
    } catch (...) {
      Py_DECREF(capsule);
      throw;
    }
    return capsule;
  });
}

PyObject* walk(PyObject*, PyObject* arguments) {
  PyObject *capsule, *roots;
  double deadline_s;
  if (!PyArg_ParseTuple(arguments, "OO!d", &capsule, &PyList_Type, &roots, &deadline_s)) return nullptr;
  Walker* self = walker_of(capsule);
  if (!self) return nullptr;
  return or_no_memory([&]() -> PyObject* {
    const int state = self->walk(roots, deadline_s);
    return state < 0 ? nullptr : PyBool_FromLong(state);
  });
}

PyObject* way(PyObject*, PyObject* arguments) {
  PyObject *capsule, *object;
  if (!PyArg_ParseTuple(arguments, "OO", &capsule, &object)) return nullptr;
  const Walker* self = walker_of(capsule);
  return self ? self->way(object) : nullptr;
}

}  // namespace gpumemprof::python
