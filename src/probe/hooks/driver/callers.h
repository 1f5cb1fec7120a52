// Which library a call came from, by its return address.
#pragma once

#include "probe/stream.h"

namespace gpumemprof::probe {

/// The file name of the library, without its folder, as a label of the event. The answer is that of
/// the first call from there: a library that was closed and another one loaded in its place keep
/// the first one's name.
Label driver_caller(const void* return_address);

/// A number by which the library can be found again; 0 where it is not known.
uint32_t driver_caller_number(const void* return_address);
/// An address in that library, as good as the call's own; null for 0.
const void* address_of_caller(uint32_t number);

}  // namespace gpumemprof::probe
