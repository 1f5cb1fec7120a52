// What monitor, track and diagnose share: samples at a steady pace until time is up or a signal
// says so.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "live/sampler.h"
#include "telemetry/writer.h"

namespace gpumemprof {

/// Blocks SIGINT, SIGTERM and SIGHUP, so that they are waited for and never interrupt a write.
/// Called at the very beginning of the command: a signal that comes before there is a file is kept
/// until there is one. Answers which signals these are.
sigset_t hold_stop_signals();

struct Pace {
  double interval_s = 0.1;
  /// Empty: until a signal, or until the watched process ends. 0: one sample.
  std::optional<double> duration_s;
};

struct WatchEnd {
  int signal = 0;  ///< 0: time is up, or the process ended
  bool process_ended = false;
  uint64_t late_samples = 0;  ///< moments that passed without a sample because one took too long
};

/// Calls `take` with each round of samples, on a schedule that does not drift; moments that were
/// missed are counted and not made up for. One round at once, then one each interval.
/// Errors: those of `take`, which end it.
Result<WatchEnd> watch(Sampler& sampler, const Pace& pace,
                       const std::function<Status(std::vector<TelemetryEvent>)>& take);

/// --format where it is given, else as the name ends, else CSV, or for tfmemprof JSON.
TelemetryFormat chosen_format(const std::string& format, const std::string& output);

/// "pid 41 cpu: 84.0 MiB; all processes use 11.3 % of 23.5 GiB" for one event.
std::string sample_text(const TelemetryEvent& event);

}  // namespace gpumemprof
