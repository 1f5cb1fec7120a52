// Which library a call came from, by its return address.
#pragma once

#include "probe/stream.h"

namespace gpumemprof::probe {

/// The file name of the library, without its folder, as a label of the event. The answer is that of
/// the first call from there: a library that was closed and another one loaded in its place keep
/// the first one's name.
Label driver_caller(const void* return_address);

}  // namespace gpumemprof::probe
