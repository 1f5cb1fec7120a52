// gpumemprof track: samples into a file in the background, with alerts, until it is stopped.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/watch.h"
#include "devices/oom_kills.h"
#include "live/alerts.h"
#include "report/words.h"
#include "telemetry/flight_bundle.h"

namespace gpumemprof {
namespace {

struct TrackArguments : WatchArguments {
  AlertOptions alerts;
  FlightBundleOptions flight;
  std::string job_id;
  std::optional<int64_t> rank, local_rank, world_size;
  bool watchdog = false, flight_recorder = false;
};

/// An integer environment variable; empty if it is not a number.
std::optional<int64_t> variable(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end ? std::nullopt : std::optional<int64_t>(value);
}

/// What the options say, else what the launcher says: torchrun, then Open MPI, then Slurm. All of
/// one launcher, never a mixture.
void resolve_identity(const TrackArguments& arguments, TelemetryEvent* identity) {
  static constexpr const char* kLaunchers[][3] = {
      {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"}};
  for (const auto& [rank, local_rank, world_size] : kLaunchers) {
    if (!variable(rank) || !variable(world_size)) continue;
    identity->rank = *variable(rank), identity->world_size = *variable(world_size);
    identity->local_rank = variable(local_rank).value_or(identity->rank);
    break;
  }
  if (arguments.rank) identity->rank = *arguments.rank;
  if (arguments.world_size) identity->world_size = *arguments.world_size;
  identity->local_rank = arguments.local_rank.value_or(
      arguments.rank ? std::min(identity->rank, identity->world_size - 1) : identity->local_rank);
  const char* job = std::getenv("TORCHELASTIC_RUN_ID");
  if (!job || !*job) job = std::getenv("SLURM_JOB_ID");
  if (!arguments.job_id.empty())
    identity->job_id = arguments.job_id;
  else if (job && *job)
    identity->job_id = job;
}

std::string wrong_arguments(const TrackArguments& a, const TelemetryEvent& identity) {
  if (!(a.alerts.warning_percent > 0 && a.alerts.critical_percent <= 100))
    return "thresholds must be above 0 and at most 100 percent";
  if (a.alerts.warning_percent > a.alerts.critical_percent)
    return "--warning-threshold is above --critical-threshold";
  const bool ranks_fit = identity.world_size >= 1 && identity.rank >= 0 &&
                         identity.rank < identity.world_size && identity.local_rank >= 0 &&
                         identity.local_rank < identity.world_size;
  return ranks_fit ? "" : "--rank and --local-rank must be 0 or more and below --world-size";
}

class Tracker {
 public:
  Tracker(const TrackArguments& arguments, Sampler* sampler, TelemetryWriter* writer)
      : arguments_(arguments),
        sampler_(sampler),
        writer_(writer),
        flight_(arguments.flight),
        kills_(arguments.sampler.root) {}

  Status take(std::vector<TelemetryEvent> events) {
    for (const std::string& news : sampler_->take_news()) say("Tracking also " + news);
    remember(events);
    if (rounds_++ == 0) add_mark("start", events, &events);
    std::vector<TelemetryEvent> alerts;
    count(events);
    for (const TelemetryEvent& event : events) {
      if (event.event_type != "sample") continue;
      // Every process shares the CPU's memory, so it has one alert; devices have one each.
      const auto [memory, is_new] = alerts_.try_emplace(event.device_id, arguments_.alerts);
      if (auto alert = memory->second.look(event)) alerts.push_back(std::move(*alert));
      const std::tuple series{event.collector, event.pid, event.device_id};
      const auto [fixed, _] = thresholds_.try_emplace(series, arguments_.threshold_mib);
      if (auto alert = fixed->second.look(event)) alerts.push_back(std::move(*alert));
    }
    for (TelemetryEvent& alert : alerts) {
      say(alert.event_type + ": " + *alert.context);
      ++alert_count_;
      events.push_back(std::move(alert));
    }
    if (arguments_.flight_recorder) {
      for (const TelemetryEvent& event : events) flight_.record(event);
      if (const uint64_t killed = kills_.new_kills(); killed > 0) dump(killed);
    }
    return put(events);
  }

  Status finish(const WatchEnd& end) {
    // A signal comes between two samples: the figures at the very end are worth one more.
    std::vector<TelemetryEvent> events;
    if (end.signal != 0) {
      remember(events = sampler_->sample());
      count(events);
    }
    // For processes that have ended, the stop event keeps the time of their last sample.
    if (is_last_of_now_) {
      for (TelemetryEvent& event : last_) event.timestamp_ns = wall_clock_ns();
    }
    add_mark("stop", last_, &events);
    if (auto done = put(events); !done) return done;
    if (arguments_.flight_recorder) {
      if (const uint64_t killed = kills_.new_kills(); killed > 0) dump(killed);
    }
    return writer_ ? writer_->close() : Status{};
  }

  void sum_up(const WatchEnd& end) const {
    std::string text = end.process_ended ? "The process has ended; " : "";
    text += samples_ == 0 ? "no sample was taken"
                          : format_plural(samples_, "sample") + ", highest " + format_bytes(peak_);
    text += ", " + format_plural(alert_count_, "alert");
    if (end.late_samples > 0)
      text += ", " + format_plural(end.late_samples, "moment") +
              " missed because a sample took too long";
    say(text);
    if (writer_ && arguments_.output != "-") say("Saved: " + arguments_.output);
  }

  void say(const std::string& line) const {
    FILE* out = arguments_.output == "-" ? stderr : stdout;
    std::fprintf(out, "%s\n", printable(line).c_str());
    std::fflush(out);
  }

 private:
  void remember(const std::vector<TelemetryEvent>& events) {
    is_last_of_now_ = !events.empty();
    if (is_last_of_now_) last_ = events;
  }

  void count(const std::vector<TelemetryEvent>& events) {
    for (const TelemetryEvent& event : events) {
      if (event.event_type != "sample") continue;
      ++samples_;
      peak_ = std::max(peak_, event.allocated_bytes.value_or(0));
    }
  }

  /// Marks the beginning or the end of each series.
  static void add_mark(const char* type, std::vector<TelemetryEvent> of,
                       std::vector<TelemetryEvent>* to) {
    std::vector<TelemetryEvent> marks;
    for (TelemetryEvent& event : of) {
      if (event.event_type != "sample") continue;
      event.event_type = type, event.change_bytes = 0;
      marks.push_back(std::move(event));
    }
    const bool before = std::string_view(type) == "start";
    to->insert(before ? to->begin() : to->end(), marks.begin(), marks.end());
  }

  Status put(const std::vector<TelemetryEvent>& events) {
    return writer_ && !events.empty() ? writer_->append(events) : Status{};
  }

  void dump(uint64_t killed) {
    const std::string why =
        "the kernel killed " + format_plural(killed, "process") + " of this cgroup (out of memory)";
    auto bundle = flight_.dump("kernel.oom_kill", why);
    say(bundle ? "critical: " + why + "; written: " + *bundle
               : "critical: " + why + "; " + bundle.error().message);
  }

  const TrackArguments& arguments_;
  Sampler* sampler_;
  TelemetryWriter* writer_;
  FlightBundles flight_;
  OomKills kills_;
  std::map<int64_t, Alerts> alerts_;
  std::map<std::tuple<std::string, int64_t, int64_t>, Threshold>
      thresholds_;                    // by process and device
  std::vector<TelemetryEvent> last_;  // the last that there were
  bool is_last_of_now_ = false;       // of this round, not of one before
  uint64_t rounds_ = 0, samples_ = 0, peak_ = 0, alert_count_ = 0;
};

int track(TrackArguments& arguments) {
  TelemetryEvent& identity = arguments.sampler.identity;
  resolve_identity(arguments, &identity);
  if (auto wrong = wrong_arguments(arguments, identity); !wrong.empty()) return wrong_usage(wrong);
  auto watched = open_watched(&arguments);
  if (!watched) return report_error("", watched.error());
  auto& [sampler, writer] = *watched;
  Tracker tracker(arguments, &sampler, writer ? &*writer : nullptr);
  tracker.say("Tracking " + sampler.subject() + "; stop with Ctrl-C or kill");
  for (const std::string& note : sampler.notes()) tracker.say("Note: " + note);
  if (!arguments.device.notes.empty()) tracker.say("Note: " + arguments.device.notes);
  if (arguments.watchdog) {
    tracker.say(
        "Note: --watchdog: only the program itself can free its memory (use MemoryWatchdog in it); "
        "track raises alerts");
  }
  if (!writer) tracker.say("Note: samples are not kept: name a file with --output");
  auto end = watch(sampler, arguments.pace, [&](std::vector<TelemetryEvent> events) {
    return tracker.take(std::move(events));
  });
  if (!end) return report_error("", end.error());
  if (auto done = tracker.finish(*end); !done) return report_error("", done.error());
  tracker.sum_up(*end);
  return kExitOk;
}

void add_flight_options(CLI::App* command, TrackArguments* arguments) {
  command->add_flag("--oom-flight-recorder", arguments->flight_recorder,
                    "when the kernel kills for lack of memory, write the last samples to a folder");
  add_defaulted(command, "--oom-dump-dir", "DIR", arguments->flight.folder,
                "parent of these folders");
  add_defaulted(command, "--oom-buffer-size", "N", arguments->flight.buffer_size,
                "number of events kept")
      ->check(CLI::PositiveNumber);
  add_defaulted(command, "--oom-max-dumps", "N", arguments->flight.max_dumps,
                "delete the oldest above this number")
      ->check(CLI::PositiveNumber);
  add_defaulted(command, "--oom-max-total-mb", "MB", arguments->flight.max_total_mb,
                "delete the oldest above this total size, in MiB")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_track_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<TrackArguments>();
  CLI::App* command = app.add_subcommand("track", "write samples to a file, with alerts");
  if (context.tensorflow) arguments->pace.interval_s = 1;
  add_watch_options(command, context, arguments.get(),
                    {.duration = "seconds (default: until stopped); 0 takes one sample",
                     .output = "output file; complete after every sample",
                     .pid = "track this process",
                     .threshold = "alert when allocated memory exceeds this many MiB"});
  command->add_flag("--watchdog", arguments->watchdog,
                    "accepted for compatibility: only the program itself can free its memory "
                    "(MemoryWatchdog)");
  add_defaulted(command, "--warning-threshold", "%", arguments->alerts.warning_percent,
                "alert when more than this percentage of a memory is in use");
  add_defaulted(command, "--critical-threshold", "%", arguments->alerts.critical_percent,
                "critical alert above this percentage");
  add_value(command, "--job-id", "ID", arguments->job_id, "stored in every event");
  add_value(command, "--rank", "N", arguments->rank, "stored in every event");
  add_value(command, "--local-rank", "N", arguments->local_rank, "stored in every event");
  add_value(command, "--world-size", "N", arguments->world_size, "stored in every event");
  add_flight_options(command, arguments.get());
  command->callback([arguments, &context] { context.exit_code = track(*arguments); });
}

}  // namespace gpumemprof
