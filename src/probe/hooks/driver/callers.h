// The library that made a call, by return address.
#pragma once

#include "probe/stream.h"

namespace gpumemprof::probe {

/// The file name of the library, without its folder, as a label of the event. The first call from
/// an address decides: if the library is closed and another one loaded in its place, the first name
/// stays.
Label driver_caller(const void* return_address);

/// A number that identifies the library; 0 if unknown.
uint32_t driver_caller_number(const void* return_address);
/// An address in that library, as good as the call's own; null for 0.
const void* address_of_caller(uint32_t number);

}  // namespace gpumemprof::probe
