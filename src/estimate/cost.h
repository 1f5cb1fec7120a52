// What a run costs at the user's own prices: the cheapest board that holds its peak, and the waste
// as money. There is no price in this program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "estimate/answer.h"

namespace gpumemprof {

inline constexpr double kHoursOfADay = 24;

/// What an hour of a board costs.
struct Price {
  double per_hour = 0;
  std::string currency;  ///< "EUR", "$"; empty: not told
};

/// "2.49/h", "2.49", "2.49 EUR/h", "$2.49/h". Errors: kUsage with one sentence.
Result<Price> parse_price(std::string_view text);

struct CostOptions {
  std::optional<Price> price;      ///< of the board that the run was on
  std::vector<BoardPrice> boards;  ///< of a price list; empty: none was given
  std::optional<uint64_t> capacity_bytes;  ///< of that board, where the user said it
};

/// Where the bytes that a board must have come from.
enum class NeedBasis : uint8_t {
  kDriver,     ///< the driver's figure for the run's processes, context and libraries included
  kReserved,   ///< what the allocator held of the device, without those
  kAllocated,  ///< what was allocated: the allocator's own bytes are not known
};
const char* need_basis_name(NeedBasis basis);  ///< "driver", "reserved", "allocated"

/// The piece of advice that saves the most of the main device. Savings overlap, so that they are
/// not added up.
struct CostSaving {
  std::string kind;
  SavingBasis basis = SavingBasis::kAtStake;
  uint64_t bytes = 0;
  uint64_t need_bytes = 0;             ///< what would be left to hold
  std::optional<BoardPrice> cheapest;  ///< for that; absent where there is no list or none holds it
};

struct Cost {
  std::optional<Price> price;
  std::string currency;                 ///< of all figures; may be empty
  std::optional<uint64_t> board_bytes;  ///< of the board that the run was on
  std::optional<uint64_t> need_bytes;   ///< what a board must have for the main device's peak
  NeedBasis need_basis = NeedBasis::kAllocated;
  uint64_t refused_bytes = 0;  ///< of the need: what the request that ended the run lacked
  /// The most that was, without the cache that was given back before the first allocation.
  std::optional<uint64_t> reserved_bytes;
  uint64_t allocated_bytes = 0;            ///< the most that was
  size_t boards = 0;                       ///< in the price list
  std::optional<BoardPrice> cheapest;
  std::optional<CostSaving> saving;
  std::vector<std::pair<std::string, std::string>> unknown;  ///< figure -> why

  /// reserved − allocated, each at its most: what better use of the allocator could give back.
  std::optional<uint64_t> waste_bytes() const;
  /// bytes ÷ board × price × 24; absent where one of them is not known.
  std::optional<double> per_day(std::optional<uint64_t> bytes) const;
};

/// `advice`: null where nobody looked for it. Errors: kUsage where currencies are mixed.
Result<Cost> cost_of(const Analysis& analysis, const Tables& tables, const AdviceReport* advice,
                     const CostOptions& options);

}  // namespace gpumemprof
