#include "native/marks/optimizers.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpumemprof/gpumemprof.h"
#include "native/marks/dying.h"
#include "native/marks/names.h"
#include "native/marks/roles.h"
#include "native/marks/steps.h"
#include "native/marks/tensors.h"
#include "native/marks/text.h"

namespace gpumemprof::python {
namespace {

constexpr int kDeepest = 4;  // lists in lists of an optimizer's state

/// By what is seen that the set has changed. A state that was loaded is another dictionary; one
/// whose parameters have moved to another device begins elsewhere.
struct Shape {
  const void* state = nullptr;
  Py_ssize_t states = 0, first_state = 0, groups = 0, parameters = 0;
  const void* first_address = nullptr;

  bool operator==(const Shape&) const = default;
};

PyObject *g_state = nullptr, *g_groups = nullptr, *g_params = nullptr;
std::unordered_map<PyObject*, Shape>* g_optimizers = nullptr;
StepCounter* g_steps = nullptr;
std::vector<Sight>* g_sights = nullptr;  // of a look that is made; kept for its memory

PyObject* item(PyObject* dictionary, PyObject* key) {  // borrowed
  if (!dictionary || !PyDict_Check(dictionary)) return nullptr;
  PyObject* value = PyDict_GetItemWithError(dictionary, key);
  if (!value) PyErr_Clear();
  return value;
}

/// Items of a list or tuple, 0 for anything else.
Py_ssize_t size_of(PyObject* list) {
  return list && (PyList_Check(list) || PyTuple_Check(list)) ? PySequence_Fast_GET_SIZE(list) : 0;
}
PyObject* at(PyObject* list, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(list, i); }

struct Optimizer {
  PyObject *state, *groups;  ///< borrowed; null where it has no such thing

  explicit Optimizer(PyObject* optimizer) {
    PyObject* own = PyObject_GenericGetDict(optimizer, nullptr);
    if (!own) PyErr_Clear();
    state = item(own, g_state);
    groups = item(own, g_groups);
    Py_XDECREF(own);
    if (state && !PyDict_Check(state)) state = nullptr;
  }

  Shape shape() const {
    Shape shape;
    shape.state = state;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (state) shape.states = PyDict_GET_SIZE(state);
    if (state && PyDict_Next(state, &position, &key, &value) && PyDict_Check(value))
      shape.first_state = PyDict_GET_SIZE(value);
    shape.groups = size_of(groups);
    PyObject* first = nullptr;
    for (Py_ssize_t i = 0; i < shape.groups; ++i) {
      PyObject* params = item(at(groups, i), g_params);
      if (!first && size_of(params)) first = at(params, 0);
      shape.parameters += size_of(params);
    }
    // Last, as it calls into PyTorch, which might collect garbage: what is borrowed ends there.
    Py_XINCREF(first);
    if (first) shape.first_address = storage_of(first);
    Py_XDECREF(first);
    return shape;
  }
};

std::vector<PyObject*> parameters_of(const Optimizer& optimizer) {
  std::vector<PyObject*> out;
  for (Py_ssize_t g = 0; g < size_of(optimizer.groups); ++g) {
    PyObject* params = item(at(optimizer.groups, g), g_params);
    for (Py_ssize_t i = 0; i < size_of(params); ++i) out.push_back(at(params, i));
  }
  return out;
}

/// Calls `see(tensor)` for the tensors of one parameter's state.
template <class See>
void each_of_state(PyObject* value, See see, int depth = 0) {
  if (is_tensor(value)) return see(value);
  if (depth >= kDeepest) return;
  for (Py_ssize_t i = 0; i < size_of(value); ++i) each_of_state(at(value, i), see, depth + 1);
  PyObject *key, *inner;
  if (!PyDict_Check(value)) return;
  for (Py_ssize_t i = 0; PyDict_Next(value, &i, &key, &inner);) each_of_state(inner, see, depth + 1);
}

/// Appends what optimizers have, behind what models have.
class Seeing {
 public:
  explicit Seeing(std::vector<Sight>* sights)
      : sights_(*sights), before_(roles().sights()), models_end_(sights->size()) {}

  void see(const Optimizer& optimizer) {
    for (Py_ssize_t g = 0; g < size_of(optimizer.groups); ++g) {
      PyObject* params = item(at(optimizer.groups, g), g_params);
      for (Py_ssize_t i = 0; i < size_of(params); ++i) see_parameter(at(params, i));
    }
    PyObject *key, *value;
    for (Py_ssize_t i = 0; optimizer.state && PyDict_Next(optimizer.state, &i, &key, &value);) {
      each_of_state(value, [this](PyObject* tensor) {
        sights_.push_back({tensor, storage_of(tensor), GPUMEMPROF_ROLE_OPTIMIZER_STATE});
      });
    }
  }

 private:
  /// What was one of a model is so, or the sight of that model has changed.
  void see_parameter(PyObject* parameter) {
    const size_t i = sights_.size();
    const Sight as_before{parameter, nullptr, 0};
    if ((i < before_.size() && before_[i] == as_before) || is_of_model(parameter)) {
      sights_.push_back(as_before);
    } else if (is_tensor(parameter)) {
      see_with_gradient(parameter, &sights_);
    }
  }

  bool is_of_model(PyObject* parameter) {
    for (; read_ < models_end_; ++read_) of_models_.insert(sights_[read_].tensor);
    return of_models_.contains(parameter);
  }

  std::vector<Sight>& sights_;
  const std::vector<Sight>& before_;
  const size_t models_end_;
  size_t read_ = 0;
  std::unordered_set<const PyObject*> of_models_;
};

/// Whether all that the optimizer has is told. Without names, which take longer.
class Looking {
 public:
  bool is_told(const Optimizer& optimizer) {
    for (Py_ssize_t g = 0; g < size_of(optimizer.groups); ++g) {
      PyObject* params = item(at(optimizer.groups, g), g_params);
      for (Py_ssize_t i = 0; i < size_of(params); ++i) {
        PyObject* parameter = at(params, i);
        const void* address = is_tensor(parameter) ? storage_of(parameter) : nullptr;
        if (!address || roles().is_seen(address)) continue;  // of a model
        all_told_ &= roles().is_told(address, GPUMEMPROF_ROLE_PARAMETER, parameter);
        others_.push_back(parameter);
      }
    }
    PyObject *key, *value;
    for (Py_ssize_t i = 0; optimizer.state && PyDict_Next(optimizer.state, &i, &key, &value);) {
      each_of_state(value, [&](PyObject* tensor) {
        all_told_ &= roles().is_told(storage_of(tensor), GPUMEMPROF_ROLE_OPTIMIZER_STATE, key);
      });
    }
    return all_told_;
  }
  /// Its parameters that are of no model.
  const std::vector<PyObject*>& others() const { return others_; }

 private:
  bool all_told_ = true;
  std::vector<PyObject*> others_;
};

/// Tells one optimizer's storages, each once.
class Telling {
 public:
  /// In a look: what has been told is left out.
  Telling(std::string class_name, bool is_look)
      : is_look_(is_look), class_name_(std::move(class_name)), names_(parameter_names()) {}

  void tell(const Optimizer& optimizer) {
    for (Py_ssize_t g = 0; g < size_of(optimizer.groups); ++g) {
      PyObject* params = item(at(optimizer.groups, g), g_params);
      for (Py_ssize_t i = 0; i < size_of(params); ++i) tell_parameter(at(params, i), g, i);
    }
    if (!is_look_) tell_gradients(parameters_of(optimizer), "", false);
    PyObject *key, *value;
    for (Py_ssize_t i = 0; optimizer.state && PyDict_Next(optimizer.state, &i, &key, &value);) {
      const auto name = names_.find(key);
      owner_ = key;
      tell_state(value, name != names_.end() ? name->second : class_name_, text_of(key, ""), 0);
    }
  }

 private:
  void mark(const void* address, int role, const PyObject* owner, const std::string& name) {
    if (!address || (is_look_ && roles().is_told(address, role, owner))) return;
    roles().tell(address, role, owner, name);
  }

  void tell_parameter(PyObject* parameter, Py_ssize_t group, Py_ssize_t index) {
    const auto [name, is_new] = names_.emplace(parameter, "");
    if (is_new) {  // of no model that was seen
      name->second =
          class_name_ + " group " + std::to_string(group) + " parameter " + std::to_string(index);
    }
    mark(storage_of(parameter), GPUMEMPROF_ROLE_PARAMETER, parameter, name->second);
  }

  void tell_state(PyObject* value, const std::string& of, const std::string& path, int depth) {
    if (is_tensor(value)) {
      mark(storage_of(value), GPUMEMPROF_ROLE_OPTIMIZER_STATE, owner_,
           path.empty() ? of : path + " of " + of);
      return;
    }
    if (depth >= kDeepest) return;
    for (Py_ssize_t i = 0; i < size_of(value); ++i) tell_state(at(value, i), of, path, depth + 1);
    if (!PyDict_Check(value)) return;
    PyObject *key, *inner;
    for (Py_ssize_t i = 0; PyDict_Next(value, &i, &key, &inner);) {
      const std::string name = text_of(key, "");
      tell_state(inner, of, path.empty() || name.empty() ? path + name : path + "." + name,
                 depth + 1);
    }
  }

  const bool is_look_;
  std::string class_name_;
  std::unordered_map<PyObject*, std::string> names_;
  const PyObject* owner_ = nullptr;  // of the state that is told
};

void on_optimizer_death(void* optimizer) {
  g_optimizers->erase(static_cast<PyObject*>(optimizer));
  g_steps->forget(optimizer);
}

}  // namespace

bool begin_optimizers() {
  if (!g_optimizers) {
    g_optimizers = new std::unordered_map<PyObject*, Shape>;  // never freed, as in names.cc
    g_steps = new StepCounter;
    g_sights = new std::vector<Sight>;
  }
  g_state = PyUnicode_InternFromString("state");
  g_groups = PyUnicode_InternFromString("param_groups");
  g_params = PyUnicode_InternFromString("params");
  return g_state && g_groups && g_params;
}

bool optimizer_stepped(PyObject* optimizer, bool counts_steps) {
  const Shape shape = Optimizer(optimizer).shape();
  const auto entry = g_optimizers->find(optimizer);
  const bool is_first_step = entry == g_optimizers->end();
  const bool is_end = g_steps->stepped(optimizer, is_first_step) && counts_steps;
  const bool is_new = is_first_step || entry->second != shape;
  const Quiet quiet;
  if (is_new && watch_death(optimizer, on_optimizer_death)) (*g_optimizers)[optimizer] = shape;
  // At the end of the step all is used. The gradients of this one may be gone by then.
  if (is_end) return true;
  if (is_new) {
    Telling(Py_TYPE(optimizer)->tp_name, false).tell(Optimizer(optimizer));
  } else {
    tell_gradients(parameters_of(Optimizer(optimizer)), "", false);
  }
  return false;
}

void look_at_all() {
  const Quiet quiet;
  std::vector<Sight>& sights = *g_sights;
  sights.clear();
  see_models(&sights);
  Seeing seeing(&sights);
  for (const auto& [object, shape] : *g_optimizers) seeing.see(Optimizer(object));
  if (roles().follow(&sights)) return;
  roles().begin_look();
  look_at_models();
  for (const auto& [object, shape] : *g_optimizers) {
    const Optimizer optimizer(object);
    Looking looking;
    if (!looking.is_told(optimizer)) Telling(Py_TYPE(object)->tp_name, true).tell(optimizer);
    tell_gradients(looking.others(), "", true);
  }
  roles().end_look();
}

void forget_optimizers() {
  if (!g_optimizers) return;
  for (const auto& entry : *g_optimizers) forget_death(entry.first);
  g_optimizers->clear();
  *g_steps = StepCounter();
}

}  // namespace gpumemprof::python
