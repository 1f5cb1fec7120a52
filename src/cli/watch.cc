#include "cli/watch.h"

#include <time.h>

#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/size.h"
#include "base/steady_clock.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace gpumemprof {
namespace {

constexpr double kLongest_s = 3e9;  // of what fits into nanoseconds

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

/// The signal that came before `until_ns`, or 0.
int wait_until(int64_t until_ns) {
  const sigset_t set = stop_signals();
  for (;;) {
    const int64_t left = std::max<int64_t>(until_ns - steady_now_ns(), 0);
    const timespec timeout{left / kSecondNs, left % kSecondNs};
    const int signal = sigtimedwait(&set, nullptr, &timeout);
    if (signal > 0) return signal;
    if (errno != EINTR) return 0;
  }
}

}  // namespace

sigset_t hold_stop_signals() {
  const sigset_t set = stop_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return set;
}

Result<WatchEnd> watch(Sampler& sampler, const Pace& pace,
                       const std::function<Status(std::vector<TelemetryEvent>)>& take) {
  WatchEnd end;
  const int64_t interval = std::max<int64_t>(1, std::llround(pace.interval_s * 1e9));
  const int64_t begin = steady_now_ns();
  const int64_t last =
      pace.duration_s ? begin + std::llround(std::min(*pace.duration_s, kLongest_s) * 1e9)
                      : INT64_MAX;
  for (int64_t round = 0;;) {
    if (auto done = take(sampler.sample()); !done) return std::unexpected(done.error());
    if (sampler.state() == WatchState::kEnded) {
      end.process_ended = true;
      return end;
    }
    const int64_t passed = (steady_now_ns() - begin) / interval;
    if (passed > round) end.late_samples += static_cast<uint64_t>(passed - round);
    round = std::max(round, passed) + 1;
    const int64_t next = begin + round * interval;
    end.signal = wait_until(std::min(next, last));
    if (end.signal != 0 || next > last) return end;
  }
}

TelemetryFormat chosen_format(const std::string& format, const std::string& output) {
  if (format == "json") return TelemetryFormat::kJson;
  if (format == "jsonl") return TelemetryFormat::kJsonLines;
  if (format == "csv") return TelemetryFormat::kCsv;
  return telemetry_format_of(output).value_or(is_tfmemprof() ? TelemetryFormat::kJson
                                                             : TelemetryFormat::kCsv);
}

std::string sample_text(const TelemetryEvent& event) {
  std::string text = event.pid > 0 ? "pid " + std::to_string(event.pid) + ' ' : "";
  text += event.device_id >= 0 ? "device " + std::to_string(event.device_id) + ": " : "cpu: ";
  text += event.allocated_bytes ? format_bytes(*event.allocated_bytes) : "unknown";
  if (event.total_bytes && event.used_bytes) {
    char share[64];
    std::snprintf(share, sizeof share, "; all processes use %.1f %% of ",
                  100 * static_cast<double>(*event.used_bytes) /
                      static_cast<double>(std::max<uint64_t>(*event.total_bytes, 1)));
    text += share + format_bytes(*event.total_bytes);
  }
  return text;
}

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
