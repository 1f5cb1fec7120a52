#include "native/marks/tree.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_set>

#include "native/marks/tensors.h"
#include "native/marks/text.h"

namespace gpumemprof::python {
namespace {

constexpr size_t kMostModules = 20000;
constexpr size_t kMostTensors = 200000;
constexpr size_t kMostPath = 1000;  // bytes; the probe cuts there too
constexpr int kMostWrappers = 8;

/// A class that holds one model and forwards to it, and the name under which it does.
struct Wrapper {
  const char* python_module;
  const char* class_name;
  const char* child;
};
constexpr Wrapper kWrappers[] = {
    {"torch._dynamo.eval_frame", "OptimizedModule", "_orig_mod"},
    {"torch.nn.parallel.distributed", "DistributedDataParallel", "module"},
    {"torch.nn.parallel.data_parallel", "DataParallel", "module"},
    {"torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel",
     "_fsdp_wrapped_module"},
    {"torch.distributed.algorithms._checkpoint.checkpoint_wrapper", "CheckpointWrapper",
     "_checkpoint_wrapped_module"},
};

PyObject *g_modules = nullptr, *g_parameters = nullptr, *g_buffers = nullptr, *g_module = nullptr;

const char* short_name(PyTypeObject* type) {
  const char* dot = strrchr(type->tp_name, '.');
  return dot ? dot + 1 : type->tp_name;
}

/// A dictionary that the module keeps under `name`, borrowed; null where it has none.
PyObject* part(PyObject* module, PyObject* name) {
  PyObject* own = PyObject_GenericGetDict(module, nullptr);
  PyObject* value = own ? PyDict_GetItemWithError(own, name) : nullptr;
  Py_XDECREF(own);  // the module has it
  if (!value) PyErr_Clear();
  return value && PyDict_Check(value) ? value : nullptr;
}

bool is_of(PyTypeObject* type, const Wrapper& wrapper) {
  if (strcmp(short_name(type), wrapper.class_name) != 0) return false;
  PyObject* module = type->tp_dict ? PyDict_GetItemWithError(type->tp_dict, g_module) : nullptr;
  if (!module) PyErr_Clear();
  return text_of(module, "?") == wrapper.python_module;
}

/// The name that a wrapper, or a class made from one, adds to the paths below it; null for any
/// other module.
const char* added_name(PyObject* module) {
  PyObject* mro = Py_TYPE(module)->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    for (const Wrapper& wrapper : kWrappers) {
      if (is_of(type, wrapper)) return wrapper.child;
    }
  }
  return nullptr;
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

class Walk {
 public:
  Tree run(PyObject* root) {
    todo_.push_back({root, ""});
    while (!todo_.empty() && tree_.modules.size() < kMostModules) {
      FoundModule next = std::move(todo_.back());
      todo_.pop_back();
      if (!seen_.insert(next.module).second) continue;
      take_tensors(next, g_parameters, true);
      take_tensors(next, g_buffers, false);
      take_children(next);
      tree_.modules.push_back(std::move(next));
    }
    return std::move(tree_);
  }

 private:
  void take_tensors(const FoundModule& in, PyObject* kind, bool is_parameter) {
    PyObject* tensors = part(in.module, kind);
    PyObject *key, *value;
    for (Py_ssize_t i = 0; tensors && PyDict_Next(tensors, &i, &key, &value);) {
      if (!is_tensor(value) || tree_.tensors.size() >= kMostTensors) continue;
      if (!seen_.insert(value).second) continue;
      tree_.tensors.push_back({value, joined(in.path, text_of(key, "?")), is_parameter});
    }
  }

  void take_children(const FoundModule& in) {
    PyObject* children = part(in.module, g_modules);
    const size_t before = todo_.size();
    const char* added = children ? added_name(in.module) : nullptr;
    PyObject *key, *value;
    for (Py_ssize_t i = 0; children && PyDict_Next(children, &i, &key, &value);) {
      if (value == Py_None || seen_.contains(value)) continue;
      const std::string name = text_of(key, "?");
      std::string path = added && name == added ? in.path : joined(in.path, name);
      if (path.size() <= kMostPath) todo_.push_back({value, std::move(path)});
    }
    std::reverse(todo_.begin() + before, todo_.end());  // the first child comes next
  }

  Tree tree_;
  std::vector<FoundModule> todo_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

bool prepare_trees() {
  g_modules = PyUnicode_InternFromString("_modules");
  g_parameters = PyUnicode_InternFromString("_parameters");
  g_buffers = PyUnicode_InternFromString("_buffers");
  g_module = PyUnicode_InternFromString("__module__");
  return g_modules && g_parameters && g_buffers && g_module;
}

Tree tree_of(PyObject* module) { return Walk().run(module); }

const std::vector<Rewalk::Tensor>& Rewalk::run(PyObject* root) {
  if (!walk(root, true)) {
    met_.clear();
    walk(root, false);
  }
  return tensors_;
}

/// False where it is not as before, and so has stopped.
bool Rewalk::walk(PyObject* root, bool is_as_before) {
  std::unordered_set<PyObject*> seen;
  if (!is_as_before) seen.insert(root);
  size_t met = 0;
  tensors_.clear();
  todo_.assign(1, root);
  for (size_t modules = 0; !todo_.empty() && modules < kMostModules; ++modules) {
    PyObject* module = todo_.back();
    todo_.pop_back();
    PyObject *key, *value;
    for (const bool is_parameter : {true, false}) {
      PyObject* tensors = part(module, is_parameter ? g_parameters : g_buffers);
      for (Py_ssize_t i = 0; tensors && PyDict_Next(tensors, &i, &key, &value);) {
        if (is_tensor(value) && tensors_.size() < kMostTensors)
          tensors_.push_back({value, is_parameter});
      }
    }
    PyObject* children = part(module, g_modules);
    const auto before = static_cast<ptrdiff_t>(todo_.size());
    for (Py_ssize_t i = 0; children && PyDict_Next(children, &i, &key, &value);) {
      if (value == Py_None) continue;
      if (!is_as_before) met_.push_back({value, seen.insert(value).second});
      if (met == met_.size() || met_[met].module != value) return false;
      if (met_[met++].is_new) todo_.push_back(value);
    }
    std::reverse(todo_.begin() + before, todo_.end());
  }
  return met == met_.size();
}

std::string class_name(PyObject* module) {
  for (int i = 0; i < kMostWrappers; ++i) {
    const char* added = added_name(module);
    PyObject* children = added ? part(module, g_modules) : nullptr;
    PyObject* child = children ? PyDict_GetItemString(children, added) : nullptr;
    if (!child || child == Py_None) break;
    module = child;
  }
  return short_name(Py_TYPE(module));
}

}  // namespace gpumemprof::python
