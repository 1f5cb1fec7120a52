// gpumemprof monitor: memory as it is now, a line at a time, for a while.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/watch.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// Peak and mean of what was seen, by series.
struct Seen {
  uint64_t samples = 0, peak_bytes = 0, last_bytes = 0;
  double sum = 0;
};

class MonitorScreen {
 public:
  /// `to_stdout`: the samples themselves go there, so lines for people go to stderr.
  explicit MonitorScreen(bool samples_on_stdout) : out_(samples_on_stdout ? stderr : stdout) {}

  void say(const std::string& line) { std::fprintf(out_, "%s\n", printable(line).c_str()); }
  void show(const std::vector<TelemetryEvent>& events) {
    for (const TelemetryEvent& event : events) {
      Seen& seen = seen_[{event.pid, event.device_id}];
      ++seen.samples;
      if (!event.allocated_bytes) continue;
      seen.last_bytes = *event.allocated_bytes;
      seen.peak_bytes = std::max(seen.peak_bytes, seen.last_bytes);
      seen.sum += static_cast<double>(seen.last_bytes);
    }
    // A line a second is enough for eyes, however often samples are taken.
    if (events.empty() || events[0].timestamp_ns < next_line_ns_) return;
    next_line_ns_ = events[0].timestamp_ns + 1'000'000'000;
    for (const TelemetryEvent& event : events) say(sample_text(event));
    std::fflush(out_);
  }
  void sum_up() {
    if (seen_.empty()) say("No sample was taken");
    for (const auto& [key, seen] : seen_) {
      const auto mean = static_cast<uint64_t>(seen.sum / static_cast<double>(seen.samples));
      say((key.first > 0 ? "pid " + std::to_string(key.first) + ' ' : std::string()) +
          (key.second >= 0 ? "device " + std::to_string(key.second) : "cpu") + ": highest sample " +
          format_bytes(seen.peak_bytes) + ", mean " + format_bytes(mean) + ", last " +
          format_bytes(seen.last_bytes) + " in " + format_plural(seen.samples, "sample"));
    }
  }

 private:
  FILE* out_;
  int64_t next_line_ns_ = 0;
  std::map<std::pair<int64_t, int64_t>, Seen> seen_;
};

int monitor(WatchArguments& arguments) {
  auto watched = open_watched(&arguments);
  if (!watched) return report_error("", watched.error());
  auto& [sampler, writer] = *watched;
  MonitorScreen screen(arguments.output == "-");
  screen.say("Monitoring " + sampler.subject());
  for (const std::string& note : sampler.notes()) screen.say("Note: " + note);
  if (!arguments.device.notes.empty()) screen.say("Note: " + arguments.device.notes);
  std::map<std::tuple<std::string, int64_t, int64_t>, Threshold> thresholds;
  auto end = watch(sampler, arguments.pace, [&](std::vector<TelemetryEvent> events) -> Status {
    for (const std::string& news : sampler.take_news()) screen.say("Monitoring also " + news);
    screen.show(events);
    const size_t samples = events.size();
    for (size_t i = 0; i < samples; ++i) {
      const std::tuple series{events[i].collector, events[i].pid, events[i].device_id};
      const auto [one, is_new] = thresholds.try_emplace(series, arguments.threshold_mib);
      auto alert = one->second.look(events[i]);
      if (!alert) continue;
      screen.say("warning: " + *alert->context);
      events.push_back(std::move(*alert));
    }
    return writer ? writer->append(events) : Status{};
  });
  if (!end) return report_error("", end.error());
  if (writer) {
    if (auto done = writer->close(); !done) return report_error("", done.error());
  }
  if (end->process_ended) screen.say("The process has ended.");
  screen.sum_up();
  if (writer && arguments.output != "-") screen.say("Saved: " + arguments.output);
  return kExitOk;
}

}  // namespace

void add_monitor_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<WatchArguments>();
  arguments->pace.duration_s = 10;
  if (context.tensorflow) arguments->pace = {.interval_s = 1, .duration_s = std::nullopt};
  CLI::App* command = app.add_subcommand("monitor", "print memory use at an interval");
  add_watch_options(
      command, context, arguments.get(),
      {.duration = context.tensorflow ? "seconds (default: until stopped); 0 takes one sample"
                                      : "seconds (default: 10); 0 takes one sample",
       .output = "also write all samples to this file",
       .pid = "watch this process",
       .threshold = "warn when allocated memory exceeds this many MiB"});
  command->callback([arguments, &context] { context.exit_code = monitor(*arguments); });
}

}  // namespace gpumemprof
