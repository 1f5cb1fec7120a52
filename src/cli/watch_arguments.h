// The options that monitor and track have in common, and what they open.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/watch.h"

namespace gpumemprof {

struct WatchArguments {
  SamplerOptions sampler;
  Pace pace;
  std::string output, format;  ///< no output: nothing is written; "-": standard output
};

/// What the help says of the options whose meaning differs between the commands.
struct WatchHelp {
  const char* duration;
  const char* output;
  const char* pid;
};

/// --device, which diagnose has as well.
void add_device_option(CLI::App* command, SamplerOptions* options);
/// --device, --duration, --interval, --output, --format and --pid, in this order.
void add_watch_options(CLI::App* command, WatchArguments* arguments, const WatchHelp& help);

struct Watched {
  Sampler sampler;
  std::optional<TelemetryWriter> writer;  ///< empty where nothing is written
};

/// Opens what is sampled and what is written to; --format alone means standard output.
/// Errors: those of Sampler::open() and TelemetryWriter::create(); nothing was written then.
Result<Watched> open_watched(WatchArguments* arguments);

}  // namespace gpumemprof
