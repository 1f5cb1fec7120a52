// The owner of aligned memory: a tensor, or an object of TensorFlow's own.
//
// port::AlignedMalloc serves the tensor allocator and some objects of the runtime, and its
// arguments do not distinguish them; the calling code does. An object's memory remains a block on
// the CPU, but its innermost frame is its class instead of the operation that happened to run:
// graphs and scalars are cached for later users, so they belong to no layer.
#pragma once

#include "probe/clients.h"

namespace gpumemprof::probe::tensorflow {

/// The file of such frames.
inline constexpr char kInternal[] = "<tensorflow internal>";

/// The class for which `caller` (an address in `client`) allocates; null for a tensor.
/// `last_of_tensors`: the thread's last caller of that kind.
const char* owner_of(const Client* client, const void* caller);
inline const char* owner_of(const Client* client, const void* caller,
                            const void** last_of_tensors) {
  if (__builtin_expect(caller == *last_of_tensors, 1)) return nullptr;
  const char* owner = owner_of(client, caller);
  if (!owner) *last_of_tensors = caller;
  return owner;
}

}  // namespace gpumemprof::probe::tensorflow
