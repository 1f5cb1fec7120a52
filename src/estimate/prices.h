// What an hour of a board costs, as the user says. There is no price in this program.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "estimate/answer.h"

namespace gpumemprof {

/// JSON: a list of {"board", "price_per_hour", "currency", "memory"}; or CSV with these as its
/// header. `memory` (what a process can have, "79.1GiB") may be left out for a known board. Errors:
/// kBadInput with one sentence, and the byte or the line.
Result<std::vector<BoardPrice>> parse_prices(std::string_view text);

/// The cheapest on which the prediction is sure to fit; of equally cheap ones the larger. Errors:
/// kUsage where the list has several currencies, which cannot be compared.
Result<std::optional<BoardPrice>> cheapest_that_fits(const Prediction& prediction,
                                                     const std::vector<BoardPrice>& prices);

}  // namespace gpumemprof
