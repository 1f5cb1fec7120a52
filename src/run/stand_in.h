// Copies of the library that stands in for the CUDA driver, for drivers newer than its list.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// Writes to `path` a copy of the stand-in that also exports `names`, of which there are some, and
/// forwards them: they replace the names of its spare functions. Then the copy was loaded, in
/// another process, and asked for each of them.
/// Errors, told as of the driver: kUnsupported where the names are too many or too long, kSystem
/// where the copy cannot be written or loaded.
Status write_stand_in_with(const std::string& stand_in, const std::vector<std::string>& names,
                           const std::string& path);

}  // namespace gpumemprof
