// When memory that is sampled will meet its limit, if it goes on as it did.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace gpumemprof {

struct Forecast {
  std::optional<double> seconds_to_limit;  ///< after the last sample; absent where there is a reason
  std::optional<double> earliest_s;        ///< with the upper end of the rate's 95 % interval
  std::optional<double> latest_s;          ///< with its lower end; absent where that is no growth
  std::optional<double> bytes_per_second;  ///< Theil-Sen
  size_t points = 0;                       ///< that were looked at
  double window_s = 0;
  std::string reason;  ///< why there is no forecast
};

/// `times_s` ascend; both of one length. Where memory falls and rises again, as with every step of
/// a training, its local maxima are what will meet the limit: of these the trend is told, where
/// growth_of_ceiling() tells growth. The line is then raised to the highest point above it.
Forecast forecast_limit(std::span<const double> times_s, std::span<const double> bytes,
                        std::optional<double> limit_bytes);

}  // namespace gpumemprof
