// Where Python's packages lie.
#pragma once

#include <string>
#include <vector>

namespace gpumemprof {

/// The folders of packages below `prefix`/lib/python3*, in descending order of their names: both
/// site-packages and dist-packages, which is Debian's.
std::vector<std::string> site_packages(const std::string& prefix);

}  // namespace gpumemprof
