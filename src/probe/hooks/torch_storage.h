// Where the storage of a tensor begins, and what autograd has said of it.
//
// No header of PyTorch is used. To find where a tensor keeps its storage, TensorImpl::has_storage()
// is called on a made-up object in which one word after the other is set. A storage is recognised by
// the name of its class.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// For a c10::TensorImpl or null; 0 for tensors without storage in memory.
uint64_t storage_address(const void* tensor_impl);

/// For one with a storage: a leaf that requires grad, an operation's result, or a view.
bool has_autograd_metadata(const void* tensor_impl);

/// For one with a storage. True if this PyTorch does not report it.
bool requires_grad(const void* tensor_impl);

}  // namespace gpumemprof::probe
