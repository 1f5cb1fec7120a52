// The query of an address: "from=0&filter=a%20b".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpumemprof {

/// The first value of `name` in a query, %XX decoded; empty where it is not there or not well formed.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace gpumemprof
