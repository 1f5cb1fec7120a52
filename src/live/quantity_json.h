#pragma once

#include <nlohmann/json.hpp>

#include "devices/quantity.h"

namespace gpumemprof {

/// A value, or an entry in "unknown" with the reason.
inline void put(nlohmann::ordered_json* metadata, const char* key, const Quantity& quantity) {
  if (quantity)
    (*metadata)[key] = *quantity.bytes;
  else
    (*metadata)["unknown"][key] = quantity.absent_because;
}

}  // namespace gpumemprof
