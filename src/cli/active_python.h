// The Python in which our package is looked for.
#pragma once

#include <string>

namespace gpumemprof {

/// $GPUMEMPROF_PYTHON, else the Python of the active virtual environment, else the one beside this
/// command (a virtual environment that is not activated), else that of PATH.
std::string active_python();

/// The file of this command; "gpumemprof" where the system does not say.
std::string own_program();

}  // namespace gpumemprof
