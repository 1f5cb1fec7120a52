// When to alert that memory is short: once, not with every sample.
#pragma once

#include <cstdint>
#include <optional>

#include "telemetry/alarm.h"
#include "telemetry/event.h"

namespace gpumemprof {

struct AlertOptions {
  double warning_percent = 80, critical_percent = 95;
  double rearm_percent = 5;                ///< below the threshold, before it can be crossed again
  int64_t least_pause_ns = kAlarmPauseNs;  ///< between two alerts of one level
};

/// One memory's alerts. The measure is the largest of allocated, reserved and device used, relative
/// to the total. Not thread-safe.
class Alerts {
 public:
  explicit Alerts(const AlertOptions& options)
      : options_(options),
        alarm_({options.warning_percent, options.critical_percent}, options.rearm_percent,
               options.least_pause_ns) {}

  /// The alert for this sample, as an event of type "warning" or "critical" with the sample's own
  /// figures. Empty if the total is unknown.
  std::optional<TelemetryEvent> look(const TelemetryEvent& sample);

 private:
  AlertOptions options_;
  Alarm alarm_;
};

/// Used percent of the total; empty if there is no total.
std::optional<double> used_percent(const TelemetryEvent& sample);

}  // namespace gpumemprof
