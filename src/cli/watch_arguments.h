// The options that monitor and track have in common, and what they open.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/tensorflow.h"
#include "cli/watch.h"

namespace gpumemprof {

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
