// Whose aligned memory it is: a tensor's, or that of an object of TensorFlow's own.
//
// port::AlignedMalloc serves the allocator of tensors and some objects of the runtime, and nothing
// that they hand over tells them apart; the code that calls does. An object's memory stays what it
// is, a block on the CPU, but its innermost frame is the class that has it instead of the operation
// that happened to run: graphs and scalars are kept for whoever comes next, so no layer has them.
#pragma once

#include "probe/clients.h"

namespace gpumemprof::probe::tensorflow {

/// The file of such frames.
inline constexpr char kInternal[] = "<tensorflow internal>";

/// The class that has what `caller` (an address in `client`) asks for; null for a tensor's.
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
