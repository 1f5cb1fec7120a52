// What a model consists of, read from the dictionaries in which torch.nn.Module keeps it. No method
// of the model is called, so none of its code runs.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

namespace gpumemprof::python {

/// Borrowed: they are the model's, and hold as long as no Python code runs.
struct FoundModule {
  PyObject* module;
  std::string path;  ///< as named_modules() has it: "encoder.layers.3.linear1", the model itself ""
};
struct FoundTensor {
  PyObject* tensor;
  std::string name;   ///< as named_parameters() has it
  bool is_parameter;  ///< else it is a buffer
};
struct Tree {
  std::vector<FoundModule> modules;
  std::vector<FoundTensor> tensors;
};

/// Makes the names under which it looks things up. False without memory.
bool prepare_trees();

/// The module, those below it and what they hold, each once under its first name, in the order of
/// named_modules(). Of wrappers that add a name of their own to every path (torch.compile's, those
/// of DataParallel, DDP, FSDP and of checkpointing) the name is left out. Stops at 20,000 modules.
/// An entry that another program has put there in another form is left out.
Tree tree_of(PyObject* module);

/// The tensors of one model, walked again and again. As long as its modules are those of the walk
/// before, that takes little longer than to look at the tensors.
class Rewalk {
 public:
  struct Tensor {
    PyObject* tensor;
    bool is_parameter;
  };
  /// In an order that stays while they do. One that several modules have comes more than once.
  const std::vector<Tensor>& run(PyObject* root);

 private:
  struct Met {
    PyObject* module;
    bool is_new;  // not met before in the same walk
  };
  bool walk(PyObject* root, bool is_as_before);

  std::vector<Met> met_;  // the modules below others, as the last walk met them
  std::vector<PyObject*> todo_;
  std::vector<Tensor> tensors_;
};

/// "Linear"; of a wrapper, that of the model in it.
std::string class_name(PyObject* module);

}  // namespace gpumemprof::python
