// `estimate --calibration FILE`.
#pragma once

#include <string>

#include "estimate/calibration.h"

namespace gpumemprof {

/// Errors name the file in their message: the subject of the command is another one.
Result<Calibration> read_calibration(const std::string& path);

}  // namespace gpumemprof
