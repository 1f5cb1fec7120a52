// The options that say what boards cost.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "estimate/cost.h"

namespace gpumemprof {

struct CostArguments {
  std::string price, prices;
  bool is_given() const { return !price.empty() || !prices.empty(); }
};

void add_cost_options(CLI::App* command, CostArguments* arguments);

/// Nothing in `options` where no price was given. The exit code; what is wrong is reported.
int read_cost_options(const CostArguments& arguments, const std::string& capacity,
                      std::optional<CostOptions>* options);

}  // namespace gpumemprof
