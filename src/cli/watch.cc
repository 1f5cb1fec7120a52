#include "cli/watch.h"

#include <time.h>

#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/size.h"
#include "cli/commands.h"

namespace gpumemprof {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kLongest_s = 3e9;  // of what fits into nanoseconds

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

int64_t steady_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

/// The signal that came before `until_ns`, or 0.
int wait_until(int64_t until_ns) {
  const sigset_t set = stop_signals();
  for (;;) {
    const int64_t left = std::max<int64_t>(until_ns - steady_ns(), 0);
    const timespec timeout{left / kSecond, left % kSecond};
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
  const int64_t begin = steady_ns();
  const int64_t last =
      pace.duration_s ? begin + std::llround(std::min(*pace.duration_s, kLongest_s) * 1e9)
                      : INT64_MAX;
  for (int64_t round = 0;;) {
    if (auto done = take(sampler.sample()); !done) return std::unexpected(done.error());
    if (sampler.state() == WatchState::kEnded) {
      end.process_ended = true;
      return end;
    }
    const int64_t passed = (steady_ns() - begin) / interval;
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

}  // namespace gpumemprof
