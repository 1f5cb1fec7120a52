#include "native/marks/names.h"

#include <algorithm>
#include <cctype>
#include <list>
#include <unordered_set>

#include "native/marks/calls.h"
#include "native/marks/dying.h"
#include "native/marks/frames.h"
#include "native/marks/search.h"
#include "native/marks/tensors.h"
#include "native/marks/tree.h"

namespace gpumemprof::python {
namespace {

// A model that makes modules in its own forward would be walked at each of them.
constexpr int kMostWalks = 32;
constexpr size_t kMostRoots = 1000;
// Of about 5 ms each. A program may call modules all the time that have no name and get none.
constexpr int kMostSearches = 8;

struct Root {
  PyObject* module;  ///< not owned; taken off the list when it dies
  std::string name;  ///< its class, with a number where another model that lives is of that class
  /// Whether it has parameters or modules of its own. A loss function has neither, and a model that is
  /// being set up none yet.
  bool is_model = false;
  /// Paths as PyTorch gives them, else with the name before them. A Sequential's "2" alone says
  /// nothing.
  bool is_plain = false;
  int walks = 0;
  Rewalk tensors = {};

  std::string path(const std::string& below) const {
    if (below.empty()) return name;
    return is_plain ? below : name + "." + below;
  }
  /// What the model itself holds is called by its class, as what it makes itself is.
  std::string path_of_tensor(const std::string& below) const {
    return below.find('.') == std::string::npos ? name + "." + below : path(below);
  }
};

PyTypeObject* g_type = nullptr;
std::list<Root>* g_roots = nullptr;
std::unordered_map<PyObject*, Root*>* g_root_of = nullptr;  // of each module that has been told
int g_searches = 0, g_searches_around = 0;
// Of models in reach, those that are asked whether a module is below them.
constexpr size_t kMostAsked = 64;

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

/// Takes a root off the list. Modules of it that live on keep their names.
void drop(std::list<Root>::iterator root) {
  for (auto& entry : *g_root_of) {
    if (entry.second == &*root) entry.second = nullptr;
  }
  g_roots->erase(root);
}

void on_death(void* object) {
  auto* module = static_cast<PyObject*>(object);
  g_root_of->erase(module);
  const auto root = std::find_if(g_roots->begin(), g_roots->end(),
                                 [&](const Root& r) { return r.module == module; });
  if (root != g_roots->end()) drop(root);
  // The next object at the address is another one. At the interpreter's end there is none.
  if (!is_finalizing()) g_calls.mark_module(module, "");
}

std::string free_name(const std::string& name) {
  for (size_t i = 1;; ++i) {
    std::string candidate = i == 1 ? name : name + "#" + std::to_string(i);
    const bool is_taken = std::any_of(g_roots->begin(), g_roots->end(),
                                      [&](const Root& r) { return r.name == candidate; });
    if (!is_taken) return candidate;
  }
}

int role_of(bool is_parameter) {
  return is_parameter ? GPUMEMPROF_ROLE_PARAMETER : GPUMEMPROF_ROLE_BUFFER;
}

/// The module of a tensor's name: "encoder.0" of "encoder.0.weight".
std::string_view module_of(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

/// That two modules are below, by the names of tensors in them; empty: none.
std::string_view module_above_both(std::string_view a, std::string_view b) {
  size_t end = 0;
  for (size_t i = 0;; ++i) {
    const bool ends_a = i == a.size() || a[i] == '.', ends_b = i == b.size() || b[i] == '.';
    if (ends_a && ends_b) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) return a.substr(0, end);
  }
}

/// "12 gradients of blocks.0.*", by which readers know that a block is of several
std::string name_of_several(size_t count, const char* what, std::string_view module) {
  std::string name = std::to_string(count) + " " + what;
  if (!module.empty()) name += " of " + std::string(module) + ".*";
  return name;
}

/// Tells the storages. One that several tensors of a module share is the first one's, and how many
/// there are is said: the weights of a recurrent layer may be views of one block. That of several
/// modules is the one's above them.
void tell_tensors(const Root& root, const Tree& tree, bool only_what_is_new) {
  struct Told {
    const void* address;
    const FoundTensor* first;
    size_t more;
    std::string module;  // above all of them
  };
  std::vector<Told> told;
  std::unordered_map<const void*, size_t> index;
  for (const FoundTensor& found : tree.tensors) {
    const void* address = storage_of(found.tensor);
    if (!address) continue;
    const auto [at, is_new] = index.emplace(address, told.size());
    if (is_new) {
      told.push_back({address, &found, 0, std::string(module_of(root.path_of_tensor(found.name)))});
    } else {
      Told& first = told[at->second];
      first.more += 1;
      const std::string path = root.path_of_tensor(found.name);
      first.module = std::string(module_above_both(first.module, module_of(path)));
    }
  }
  for (const Told& t : told) {
    const int role = role_of(t.first->is_parameter);
    if (only_what_is_new && roles().is_told(t.address, role, t.first->tensor)) continue;
    std::string name = root.path_of_tensor(t.first->name);
    if (t.more && module_of(name) == t.module) {
      name += " and " + std::to_string(t.more) + " more";
    } else if (t.more) {
      const char* what = t.first->is_parameter ? "parameters" : "buffers";
      name = name_of_several(t.more + 1, what, t.module.empty() ? root.name : t.module);
    }
    roles().tell(t.address, role, t.first->tensor, std::move(name));
  }
}

/// What was thought to be a model and is below this one is part of it from now on.
void take_in_roots(const Tree& tree) {
  for (size_t i = 1; i < tree.modules.size(); ++i) {
    const auto root = std::find_if(g_roots->begin(), g_roots->end(), [&](const Root& r) {
      return r.module == tree.modules[i].module;
    });
    if (root != g_roots->end()) drop(root);
  }
}

/// Decides how its parts are called, once it has some.
void see_parts(Root& root, const Tree& tree) {
  if (root.is_model) return;
  const bool has_parameter = std::any_of(tree.tensors.begin(), tree.tensors.end(),
                                         [](const FoundTensor& t) { return t.is_parameter; });
  const bool is_first =
      std::none_of(g_roots->begin(), g_roots->end(), [](const Root& r) { return r.is_plain; });
  const bool has_numbers = std::any_of(
      tree.modules.begin(), tree.modules.end(),
      [](const FoundModule& found) { return !found.path.empty() && std::isdigit(found.path[0]); });
  root.is_model = has_parameter || tree.modules.size() > 1;
  root.is_plain = root.is_model && is_first && !has_numbers;
}

void tell(Root& root, const Tree& tree) {
  root.walks += 1;
  see_parts(root, tree);
  for (const FoundModule& found : tree.modules) {
    const auto [entry, is_new] = g_root_of->emplace(found.module, &root);
    if (!is_new && entry->second == &root) continue;
    entry->second = &root;
    if (is_new && !watch_death(found.module, on_death)) g_root_of->erase(entry);
    g_calls.mark_module(found.module, root.path(found.path).c_str());
  }
  tell_tensors(root, tree, false);
}

void add_root(PyObject* module) {
  const bool is_one = std::any_of(g_roots->begin(), g_roots->end(),
                                  [&](const Root& r) { return r.module == module; });
  if (is_one || g_roots->size() >= kMostRoots || !watch_death(module, on_death)) return;
  const Tree tree = tree_of(module);
  take_in_roots(tree);
  tell(g_roots->emplace_back(Root{module, free_name(class_name(module))}), tree);
}

/// The largest model in reach that a module is part of, where the program calls parts of a model by
/// themselves; else the module. Of one that computes alone, as an activation does, none is looked for.
/// New reference.
PyObject* model_around(PyObject* module) {
  const Tree own = tree_of(module);
  PyObject* model = module;
  if ((own.tensors.empty() && own.modules.size() < 2) || g_searches_around++ >= kMostSearches) {
    Py_INCREF(model);
    return model;
  }
  const std::vector<PyObject*> models = instances_in_reach(g_type);
  size_t most = own.modules.size();
  for (size_t i = 0; i < std::min(models.size(), kMostAsked); ++i) {
    const std::vector<FoundModule> modules = tree_of(models[i]).modules;
    const bool has_it = std::any_of(modules.begin(), modules.end(), [&](const FoundModule& found) {
      return found.module == module;
    });
    if (has_it && modules.size() > most) model = models[i], most = modules.size();
  }
  Py_INCREF(model);
  for (PyObject* other : models) Py_DECREF(other);
  return model;
}

/// Whether it is, or has become, known.
bool is_named(PyObject* module, PyObject* around) {
  if (g_root_of->contains(module)) return true;
  const auto known = around ? g_root_of->find(around) : g_root_of->end();
  Root* root = known != g_root_of->end() ? known->second : nullptr;
  if (!root || root->walks >= kMostWalks) return false;
  const Tree tree = tree_of(root->module);
  take_in_roots(tree);
  tell(*root, tree);
  return g_root_of->contains(module);
}

/// Those that other threads call, while this one waits for them.
bool name_models_in_reach() {
  if (g_searches++ >= kMostSearches) return false;
  bool is_any_new = false;
  const std::vector<PyObject*> models = instances_in_reach(g_type);
  for (PyObject* module : models) {
    if (g_root_of->contains(module)) continue;
    is_any_new = true;
    add_root(module);
  }
  for (PyObject* module : models) Py_DECREF(module);
  return is_any_new;
}

}  // namespace

bool begin_names(PyTypeObject* type) {
  if (!g_roots) {
    g_roots = new std::list<Root>;  // never freed: objects may die after static variables
    g_root_of = new std::unordered_map<PyObject*, Root*>;
  }
  g_type = type;
  Py_INCREF(type);
  return prepare_trees();
}

bool name_running_modules() {
  bool is_any_new = false;
  const std::vector<PyObject*> running = first_arguments(g_type);
  PyObject* around = nullptr;
  for (PyObject* module : running) {
    if (!g_root_of->contains(module)) {
      is_any_new = true;
      if (!is_named(module, around)) {
        PyObject* model = model_around(module);
        if (!is_named(module, model)) add_root(model);
        Py_DECREF(model);
      }
    }
    around = module;
  }
  for (PyObject* module : running) Py_DECREF(module);
  return is_any_new || name_models_in_reach();
}

std::unordered_map<PyObject*, std::string> parameter_names() {
  std::unordered_map<PyObject*, std::string> names;
  for (const Root& root : *g_roots) {
    for (const FoundTensor& found : tree_of(root.module).tensors) {
      if (found.is_parameter) names.emplace(found.tensor, root.path_of_tensor(found.name));
    }
  }
  return names;
}

void see_with_gradient(PyObject* parameter, std::vector<Sight>* sights) {
  sights->push_back({parameter, storage_of(parameter), GPUMEMPROF_ROLE_PARAMETER});
  sights->push_back({parameter, gradient_storage_of(parameter), GPUMEMPROF_ROLE_GRADIENT});
}

void see_models(std::vector<Sight>* sights) {
  for (Root& root : *g_roots) {
    for (const auto& [tensor, is_parameter] : root.tensors.run(root.module)) {
      if (is_parameter) {
        see_with_gradient(tensor, sights);
      } else {
        sights->push_back({tensor, storage_of(tensor), GPUMEMPROF_ROLE_BUFFER});
      }
    }
  }
}

void look_at_models() {
  for (Root& root : *g_roots) {
    bool is_told = true;
    const std::vector<Rewalk::Tensor>& tensors = root.tensors.run(root.module);
    for (const auto& [tensor, is_parameter] : tensors) {
      is_told &= roles().is_told(storage_of(tensor), role_of(is_parameter), tensor);
    }
    if (!is_told) tell_tensors(root, tree_of(root.module), true);
    std::vector<PyObject*> parameters;
    for (const auto& [tensor, is_parameter] : tensors)
      if (is_parameter) parameters.push_back(tensor);
    tell_gradients(parameters, root.name, true);
  }
}

void tell_gradients(const std::vector<PyObject*>& parameters, std::string_view model,
                    bool only_what_is_new) {
  struct Block {
    const void* address;
    PyObject* first;
    std::vector<PyObject*> others;
  };
  std::vector<Block> blocks;
  std::unordered_map<const void*, size_t> index;
  std::unordered_set<PyObject*> seen;  // a tied one is in the list for each of its modules
  for (PyObject* parameter : parameters) {
    const void* address = gradient_storage_of(parameter);
    if (!address) continue;
    const auto [at, is_new] = index.emplace(address, blocks.size());
    if (is_new) {
      blocks.push_back({address, parameter, {}});
    } else if (seen.insert(parameter).second && parameter != blocks[at->second].first) {
      blocks[at->second].others.push_back(parameter);
    }
  }
  for (const Block& block : blocks) {
    constexpr int kRole = GPUMEMPROF_ROLE_GRADIENT;
    const size_t count = block.others.size() + 1;
    if (only_what_is_new && roles().is_told(block.address, kRole, block.first, count)) continue;
    std::string name = roles().name(storage_of(block.first));
    if (!block.others.empty()) {
      std::string_view module = module_of(name);
      for (PyObject* other : block.others)
        module = module_above_both(module, module_of(roles().name(storage_of(other))));
      name = name_of_several(count, "gradients", module.empty() ? model : module);
    }
    roles().tell(block.address, kRole, block.first, std::move(name), count);
  }
}

void forget_names() {
  if (!g_roots) return;
  for (const auto& entry : *g_root_of) forget_death(entry.first);
  g_root_of->clear();
  g_roots->clear();
  g_searches = g_searches_around = 0;
  roles().forget();
}

}  // namespace gpumemprof::python
