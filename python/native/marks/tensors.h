// Where the memory of a tensor begins, and nothing else of it: no operator runs, no mode of the
// program hears of it, and no reference is kept.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// Takes what it needs of `torch._C`. False, with no exception set, where this PyTorch has no such
/// thing: then no storage is marked.
bool find_tensors(PyObject* torch_c);

/// The begin of the storage, of this process's part where the tensor is distributed (DTensor); 0
/// where it has none of its own (meta, sparse, lazy, fake or wrapped ones, and those of classes
/// that make their own operators) or the object is no tensor. At any time.
const void* storage_of(PyObject* tensor);

/// The same of the gradient of a leaf. Only while a `Quiet` lives.
const void* gradient_storage_of(PyObject* tensor);

bool is_tensor(PyObject* object);

/// While it lives no Python code of the program can run on this thread on our account: no garbage
/// is collected, no function mode is asked, and an exception that is set is put back at the end.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int collects_;
  PyObject* disabled_ = nullptr;
  PyObject *type_, *value_, *trace_;
};

}  // namespace gpumemprof::python
