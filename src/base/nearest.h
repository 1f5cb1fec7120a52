// What a mistyped name was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// The name that differs least, by two letters at most; empty where none does.
std::string nearest(std::string_view typed, const std::vector<std::string>& names);

}  // namespace gpumemprof
