// The address range of a function, from its object's symbol table: dlsym() returns only its start,
// and dladdr() would scan all symbols, of which TensorFlow has a million.
#pragma once

#include "probe/dynamic.h"

namespace gpumemprof::probe {

/// The addresses of the function `name` in the object that contains `inside`; empty if that object
/// does not define it, does not give its size, or has no GNU hash table (all since 2006 have one).
/// Takes the loader's lock on the list of objects: once per name, not per event.
ObjectRange function_range(const void* inside, const char* name);

}  // namespace gpumemprof::probe
