// Where a function lies, from its object's own table of symbols: dlsym() tells the beginning alone,
// and dladdr() would walk through all symbols, of which TensorFlow has a million.
#pragma once

#include "probe/dynamic.h"

namespace gpumemprof::probe {

/// The addresses of the function `name` in the object that holds `inside`; empty where that object
/// does not define it, does not say how long it is, or has no GNU hash table (all since 2006 have
/// one). Takes the loader's lock on the list of objects: once a name, not once an event.
ObjectRange function_range(const void* inside, const char* name);

}  // namespace gpumemprof::probe
