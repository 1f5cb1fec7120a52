// What the driver handed out and how it adds up, in JSON and in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/driver_memories.h"

namespace gpumemprof {

/// Null where the driver was not recorded.
nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables);

/// A table a device, each line without its end; empty where the driver was not recorded. The first
/// line of a table has no indentation.
std::vector<std::string> driver_lines(const Analysis& analysis, const Tables& tables);

/// The lines of one sum: what is used = what it is made of. What is unknown says why. Of more than
/// `most_libraries` the rest is one line.
std::vector<std::string> identity_lines(const DriverMoment& moment, const DeviceIdentity& identity,
                                        size_t most_libraries = 12);

}  // namespace gpumemprof
