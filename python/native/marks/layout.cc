#include "native/marks/layout.h"

namespace gpumemprof::python {

void TensorLayout::find_storage(PyObject* tensor, uint64_t impl, uint64_t address) {
  storages_ = kUnknown;
  const auto self = reinterpret_cast<uint64_t>(tensor);
  for (uint32_t at = 16; impl && at <= 40; at += 8) {
    if (word(self, at) != impl) continue;
    for (uint32_t member = 16; member <= 24; member += 8) {
      // Before the first member stand counts of references, which are no addresses.
      const uint64_t storage = word(impl, member);
      if (storage < 65536 || storage % 8 || storage >> 47) continue;
      if (word(storage, member) != address) continue;
      storages_ = kChecking, impl_ = at, member_ = member;
      return;
    }
  }
}

void TensorLayout::learn_storage(PyObject* tensor, uint64_t impl, uint64_t address) {
  if (storages_ == kNotFound) return find_storage(tensor, impl, address);
  if (storages_ != kChecking) return;
  if (storage(tensor) != address) {
    storages_ = kUnknown;
  } else if (++storage_checks_ >= kChecks) {
    storages_ = kTrusted;
  }
}

void TensorLayout::learn_gradient(PyObject* tensor, PyObject* gradient) {
  if (!knows_storages()) return;
  const uint64_t impl = gradient ? impl_of(gradient) : 0, autograd = autograd_of(tensor);
  if (gradients_ == kNotFound && impl && autograd) {
    // Behind the address of its functions and before a name; all of it is larger than this.
    for (uint32_t at = 8; at <= 64 && gradients_ == kNotFound; at += 8) {
      if (word(autograd, at) == impl) gradients_ = kChecking, gradient_ = at;
    }
    if (gradients_ == kNotFound) gradients_ = kUnknown;
  } else if (gradients_ == kChecking) {
    const bool is_same = impl ? gradient_of(tensor) == impl : this->gradient(tensor) == 0;
    if (!is_same) {
      gradients_ = kUnknown;
    } else if (impl && ++gradient_checks_ >= kChecks) {
      gradients_ = kTrusted;
    }
  }
}

}  // namespace gpumemprof::python
