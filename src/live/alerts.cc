#include "live/alerts.h"

#include <algorithm>
#include <cstdio>

#include "base/size.h"

namespace gpumemprof {

std::optional<double> used_percent(const TelemetryEvent& sample) {
  if (!sample.total_bytes || *sample.total_bytes == 0) return std::nullopt;
  const uint64_t used =
      std::max({sample.allocated_bytes.value_or(0), sample.reserved_bytes.value_or(0),
                sample.used_bytes.value_or(0)});
  return 100 * static_cast<double>(used) / static_cast<double>(*sample.total_bytes);
}

bool Alerts::rises(Level* level, double percent, double threshold, int64_t now_ns) {
  if (percent < threshold - options_.rearm_percent) level->raised = false;
  if (percent < threshold || level->raised) return false;
  level->raised = true;
  if (level->last_ns && now_ns - *level->last_ns < options_.least_pause_ns) return false;
  level->last_ns = now_ns;
  return true;
}

std::optional<TelemetryEvent> Alerts::look(const TelemetryEvent& sample) {
  const auto percent = used_percent(sample);
  if (!percent) return std::nullopt;
  const int64_t now = sample.timestamp_ns;
  const bool critical = rises(&critical_, *percent, options_.critical_percent, now);
  const bool warning = rises(&warning_, *percent, options_.warning_percent, now);
  if (!critical && !warning) return std::nullopt;
  TelemetryEvent alert = sample;
  alert.event_type = critical ? "critical" : "warning";
  alert.change_bytes = 0;
  char text[120];
  std::snprintf(text, sizeof text, "%.1f%% of %s are used, the threshold is %g%%", *percent,
                format_bytes(*sample.total_bytes).c_str(),
                critical ? options_.critical_percent : options_.warning_percent);
  alert.context = text;
  return alert;
}

}  // namespace gpumemprof
