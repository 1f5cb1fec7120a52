// An Error of the core as a Python exception.
#pragma once

#include <string>

#include "base/error.h"

namespace gpumemprof::python {

/// ValueError, FileNotFoundError or OSError (ErrorCode::kSystem) with the one line that the command
/// would print: `subject`, most often a path, is put before the message where it is not there yet.
/// Needs the GIL.
[[noreturn]] void raise(const Error& error, const std::string& subject = {});

}  // namespace gpumemprof::python
