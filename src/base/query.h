// The query of an address: "from=0&filter=a%20b".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpumemprof {

/// The first value of `name` in a query, %XX decoded; empty where it is not there or not well
/// formed. As forms are sent, "+" is a blank.
enum class Plus : uint8_t { kItself, kBlank };
std::optional<std::string> query_value(std::string_view query, std::string_view name,
                                       Plus plus = Plus::kItself);

}  // namespace gpumemprof
