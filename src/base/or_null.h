// A value as JSON, or null where there is none.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace gpumemprof {

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace gpumemprof
