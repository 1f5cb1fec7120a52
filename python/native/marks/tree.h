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

/// Its tensors alone, each once, in no less time than it takes to look at them: without names.
std::vector<FoundTensor> tensors_of(PyObject* module);

/// "Linear"; of a wrapper, that of the model in it.
std::string class_name(PyObject* module);

}  // namespace gpumemprof::python
