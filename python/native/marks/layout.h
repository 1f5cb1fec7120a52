// Where PyTorch keeps a tensor's storage and its gradient, so that a look at all of them is a few
// loads for each. Found at the first tensors, and compared with what PyTorch says of the next ones;
// until then, and where that ever differed, PyTorch is asked.
#pragma once

#include <Python.h>

#include <cstdint>

namespace gpumemprof::python {

class TensorLayout {
 public:
  bool knows_storages() const { return storages_ == kTrusted; }
  bool knows_gradients() const { return knows_storages() && gradients_ == kTrusted; }

  /// Where the storage begins, 0 where there is none. Only while knows_storages().
  uint64_t storage(PyObject* tensor) const { return storage_of(impl_of(tensor)); }
  /// Where the gradient's storage begins, 0 where there is none. Only while knows_gradients().
  uint64_t gradient(PyObject* tensor) const { return storage_of(gradient_of(tensor)); }

  /// The tensor's storage begins at `address`, which is not 0. `impl`: where its TensorImpl is, as
  /// PyTorch says, or 0.
  void learn_storage(PyObject* tensor, uint64_t impl, uint64_t address);
  /// The tensor's gradient; null: it has none.
  void learn_gradient(PyObject* tensor, PyObject* gradient);

 private:
  enum State { kNotFound, kChecking, kTrusted, kUnknown };
  static constexpr int kChecks = 16;

  static uint64_t word(uint64_t object, uint32_t offset) {
    return object ? *reinterpret_cast<const uint64_t*>(object + offset) : 0;
  }
  uint64_t impl_of(PyObject* tensor) const {
    return word(reinterpret_cast<uint64_t>(tensor), impl_);
  }
  uint64_t storage_of(uint64_t impl) const { return word(word(impl, member_), member_); }
  uint64_t autograd_of(PyObject* tensor) const { return word(impl_of(tensor), member_ + 8); }
  uint64_t gradient_of(PyObject* tensor) const { return word(autograd_of(tensor), gradient_); }
  void find_storage(PyObject* tensor, uint64_t impl, uint64_t address);

  State storages_ = kNotFound, gradients_ = kNotFound;
  uint32_t impl_ = 0;      // of the TensorImpl in the Python object
  uint32_t member_ = 0;    // of the storage in that, and of the address in a StorageImpl
  uint32_t gradient_ = 0;  // in what autograd keeps of a tensor
  int storage_checks_ = 0, gradient_checks_ = 0;
};

}  // namespace gpumemprof::python
