// What monitor, track and diagnose share: samples at a steady pace until time is up or a signal
// says so.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/tensorflow.h"
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

struct WatchArguments {
  SamplerOptions sampler;
  Pace pace;
  std::string output, format;  ///< no output: nothing is written; "-": standard output
  DeviceOption device;
  std::optional<double> threshold_mib;  ///< of tfmemprof
};

/// What the help says of the options whose meaning differs between the commands.
struct WatchHelp {
  const char* duration;
  const char* output;
  const char* pid;
  const char* threshold;
};

/// --duration, of which `duration` is the help, and --interval.
void add_pace_options(CLI::App* command, Pace* pace, const char* duration);

/// --device, --duration, --interval, --output, --format and --pid, in this order; tfmemprof has
/// --threshold besides.
void add_watch_options(CLI::App* command, const CommandContext& context, WatchArguments* arguments,
                       const WatchHelp& help);

struct Watched {
  Sampler sampler;
  std::optional<TelemetryWriter> writer;  ///< empty where nothing is written
};

/// Errors: those of Sampler::open(); kUsage for an accelerator that is not there, for which
/// tfmemprof measures the CPU, as its documents say.
Result<Sampler> open_sampler(const SamplerOptions& options);

/// Opens what is sampled and what is written to; --format alone means standard output.
/// Errors: those of DeviceOption::resolve(), open_sampler() and TelemetryWriter::create(); nothing
/// was written then.
Result<Watched> open_watched(WatchArguments* arguments);

}  // namespace gpumemprof
