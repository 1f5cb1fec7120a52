// Which program a command is: a traced command must be a Python that has our package, since any
// other would run in earnest, to its end.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// The Python that a command runs, and its options before the script: "python -u -X dev train.py"
/// gives {"/usr/bin/python", "-u", "-X", "dev"}. A script is run by the Python of its "#!" line.
/// Errors: kNotFound, and kUsage where it is no Python.
Result<std::vector<std::string>> python_of(const std::vector<std::string>& words,
                                           const std::string& search_path);

/// Starts that Python for a moment, and nothing of the user's. Errors: those of python_of(), and
/// kUsage where the tracer does not come into it.
Status check_that_python_has_tracer(const std::vector<std::string>& words);

}  // namespace gpumemprof
