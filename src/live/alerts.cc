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

std::optional<TelemetryEvent> Alerts::look(const TelemetryEvent& sample) {
  const auto percent = used_percent(sample);
  if (!percent) return std::nullopt;
  const auto said = alarm_.update(sample.timestamp_ns, *percent);
  if (!said) return std::nullopt;
  const bool critical = said->level == 1;
  TelemetryEvent alert = sample;
  alert.event_type = critical ? "critical" : "warning";
  alert.change_bytes = 0;
  char text[120];
  std::snprintf(text, sizeof text, "%.1f %% of %s are in use; the threshold is %g %%", *percent,
                format_bytes(*sample.total_bytes).c_str(),
                critical ? options_.critical_percent : options_.warning_percent);
  alert.context = text;
  return alert;
}

}  // namespace gpumemprof
