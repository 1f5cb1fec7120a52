#include "cli/watch_arguments.h"

#include "cli/options.h"

namespace gpumemprof {

void add_pace_options(CLI::App* command, Pace* pace, const char* duration) {
  add_value(command, "--duration", "S", pace->duration_s, duration)->check(CLI::NonNegativeNumber);
  add_defaulted(command, "--interval", "S", pace->interval_s, "seconds between samples")
      ->check(CLI::Range(0.001, 86'400.0));
}

void add_watch_options(CLI::App* command, const CommandContext& context, WatchArguments* arguments,
                       const WatchHelp& help) {
  add_device_option(command, context, &arguments->device);
  add_pace_options(command, &arguments->pace, help.duration);
  add_value(command, "-o,--output", "FILE", arguments->output, help.output);
  command
      ->add_option("--format", arguments->format,
                   "csv, json or jsonl (default: by --output's extension, else csv)")
      ->check(CLI::IsMember({"csv", "json", "jsonl"}));
  if (context.tensorflow) {
    add_value(command, "--threshold", "MB", arguments->threshold_mib, help.threshold)
        ->check(CLI::PositiveNumber);
  }
  add_value(command, "--pid", "PID", arguments->sampler.pid, help.pid)->check(CLI::PositiveNumber);
}

Result<Sampler> open_sampler(const SamplerOptions& options) {
  auto sampler = Sampler::open(options);
  if (!sampler || is_tfmemprof()) return sampler;
  if (auto why = sampler->why_no_device(); !why.empty()) return fail(ErrorCode::kUsage, why);
  return sampler;
}

Result<Watched> open_watched(WatchArguments* arguments) {
  if (arguments->output.empty() && !arguments->format.empty()) arguments->output = "-";
  if (auto known = arguments->device.resolve(); !known) return std::unexpected(known.error());
  if (arguments->device.number >= 0) arguments->sampler.device = arguments->device.number;
  arguments->sampler.identity.sampling_interval_ms =
      static_cast<int64_t>(arguments->pace.interval_s * 1000);
  auto sampler = open_sampler(arguments->sampler);
  if (!sampler) return std::unexpected(sampler.error());
  Watched watched{std::move(*sampler), std::nullopt};
  if (arguments->output.empty()) return watched;
  auto writer = TelemetryWriter::create(arguments->output,
                                        chosen_format(arguments->format, arguments->output));
  if (!writer) return std::unexpected(writer.error());
  watched.writer.emplace(std::move(*writer));
  return watched;
}

}  // namespace gpumemprof
