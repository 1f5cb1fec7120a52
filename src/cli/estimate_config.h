// `estimate --config FILE`: the options that concern configurations alone, and what becomes of
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "estimate/answer.h"

namespace gpumemprof {

/// What the user said. The first part is shared with other ways of estimating;
/// `add_configuration_options` declares the second alone.
struct ConfigurationArguments {
  std::string path;         ///< --config
  std::string batch = "1";  ///< --batch: sequences per device and micro batch, or "auto"
  std::string capacity;  ///< --capacity: what the process can have, such as "24GiB"; may be empty
  std::string optimizer, precision;  ///< --optimizer, --precision; empty: the defaults
  std::string prices;                ///< --prices: a file; may be empty
  bool table = false;                ///< --table

  std::vector<std::pair<std::string, std::string>>
      settings;  ///< "tp" -> "4", …, as they were given
};

/// Declares --sequence, --checkpointing, --tp, --pp, --inference and the like.
void add_configuration_options(CLI::App& command, ConfigurationArguments* arguments);

/// Reads the files and estimates. Errors name the file in their message where it is not the
/// configuration itself.
Result<EstimateAnswer> estimate_from_configuration(const ConfigurationArguments& arguments);

}  // namespace gpumemprof
