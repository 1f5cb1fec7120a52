#include "cli/watch_arguments.h"

namespace gpumemprof {

void add_watch_options(CLI::App* command, const CommandContext& context, WatchArguments* arguments,
                       const WatchHelp& help) {
  add_device_option(command, context, &arguments->device);
  command->add_option("--duration", arguments->pace.duration_s, help.duration)->type_name("S");
  command->add_option("--interval", arguments->pace.interval_s, "seconds between samples")
      ->type_name("S")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, help.output)->type_name("FILE");
  command
      ->add_option("--format", arguments->format,
                   "csv, json or jsonl (default: by --output's extension, else csv)")
      ->check(CLI::IsMember({"csv", "json", "jsonl"}));
  if (context.tensorflow) {
    command->add_option("--threshold", arguments->threshold_mib, help.threshold)
        ->type_name("MB")
        ->check(CLI::PositiveNumber);
  }
  command->add_option("--pid", arguments->sampler.pid, help.pid)
      ->type_name("PID")
      ->check(CLI::PositiveNumber);
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
