// gpumemprof top: what lives now, on the terminal, or once for a script.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>

#include "base/steady_clock.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/watch.h"
#include "live/sampler.h"
#include "picture/camera.h"
#include "top/tables.h"
#include "top/terminal.h"
#include "top/view.h"

namespace gpumemprof {
namespace {

struct TopArguments {
  CameraOptions camera;
  bool once = false;
  std::string format = "text", colour = "auto";
  double interval_s = 1;
};

/// "gpumemprof-top-20250131-235959.END" in the working directory.
std::string new_file_name(const char* end) {
  return "gpumemprof-top-" + time_text("%Y%m%d-%H%M%S") + end;
}

/// Samples into a file, as `gpumemprof track` writes them.
class Tracking {
 public:
  static Result<Tracking> begin(double interval_s) {
    SamplerOptions options;
    options.identity.sampling_interval_ms = static_cast<int64_t>(interval_s * 1000);
    auto sampler = Sampler::open(options);
    if (!sampler) return std::unexpected(sampler.error());
    auto writer = TelemetryWriter::create(new_file_name(".jsonl"), TelemetryFormat::kJsonLines);
    if (!writer) return std::unexpected(writer.error());
    return Tracking(std::move(*sampler), std::move(*writer));
  }
  Status sample() { return writer_.append(sampler_.sample()); }
  Status end() { return writer_.close(); }
  const std::string& path() const { return writer_.path(); }

 private:
  Tracking(Sampler sampler, TelemetryWriter writer)
      : sampler_(std::move(sampler)), writer_(std::move(writer)) {}
  Sampler sampler_;
  TelemetryWriter writer_;
};

class Session {
 public:
  Session(const TopArguments& arguments, Terminal* terminal)
      : arguments_(arguments), terminal_(terminal), camera_(in_turn(arguments.camera)) {
    state_.unicode = terminal->shows_unicode();
    state_.working_folder = working_folder();
    state_.warning_percent = arguments.camera.alerts.warning_percent;
    state_.critical_percent = arguments.camera.alerts.critical_percent;
  }

  void run(const sigset_t& stop) {
    constexpr int kMostWaitMs = 200;  // so that a signal to stop is heard soon
    const auto interval = static_cast<int64_t>(arguments_.interval_s * 1e9);
    int64_t next = 0;
    for (;;) {
      const int64_t now = steady_now_ns();
      if (now >= next) {
        next = now + interval;
        look();
        show();
      }
      const timespec at_once{};
      if (sigtimedwait(&stop, nullptr, &at_once) > 0) break;
      const int64_t wait_ms = std::clamp<int64_t>((next - now) / 1'000'000, 1, kMostWaitMs);
      const TerminalInput input = terminal_->read(static_cast<int>(wait_ms));
      if (input.kind == TerminalInput::Kind::kNone) continue;
      if (!take(input)) break;
      show();
    }
    if (tracking_) (void)tracking_->end();
  }

  const std::string& tracked() const { return last_file_; }

 private:
  /// Where there is more to read than time, the keyboard is not kept waiting.
  static CameraOptions in_turn(CameraOptions options) {
    options.most_look_ns = kLookForAView;
    return options;
  }
  void look() {
    if (tracking_) {
      if (auto done = tracking_->sample(); !done) end_tracking(done.error().message);
    }
    if (!state_.paused) state_.picture = camera_.take();
  }
  void show() { terminal_->show(draw(state_, terminal_->width(), terminal_->height())); }

  /// False: it is over.
  bool take(const TerminalInput& input) {
    Wish wish = Wish::kNone;
    if (input.kind == TerminalInput::Kind::kCharacter) wish = press(input.character, &state_);
    if (input.kind == TerminalInput::Kind::kKey) wish = press(input.key, &state_);
    if (input.kind == TerminalInput::Kind::kClick)
      click(input.x, input.y, terminal_->height(), &state_);
    switch (wish) {
      case Wish::kQuit:
        return false;
      case Wish::kExport:
        export_picture();
        break;
      case Wish::kTrack:
        toggle_tracking();
        break;
      case Wish::kThresholds:
        camera_.set_thresholds(state_.warning_percent, state_.critical_percent);
        break;
      case Wish::kNone:
        break;
    }
    return true;
  }

  void export_picture() {
    const std::string path = new_file_name(".json");
    auto output = Output::open(path, {});
    Status done = output ? output->write(picture_json(state_.picture, Commands::kWhole, 1) + '\n')
                         : std::unexpected(output.error());
    if (done) done = output->close();
    state_.message = done ? "written: " + path : done.error().message;
  }

  void toggle_tracking() {
    if (tracking_) return end_tracking("");
    auto begun = Tracking::begin(arguments_.interval_s);
    if (!begun) {
      state_.message = begun.error().message;
      return;
    }
    tracking_ = std::make_unique<Tracking>(std::move(*begun));
    last_file_ = state_.tracking = tracking_->path();
    state_.message = "tracking into " + last_file_;
    // At once, so that even the shortest tracking leaves a file that says something.
    if (auto done = tracking_->sample(); !done) end_tracking(done.error().message);
  }

  void end_tracking(const std::string& why) {
    const auto done = tracking_->end();
    tracking_.reset();
    state_.tracking.clear();
    state_.message = !why.empty() ? why : done ? "saved: " + last_file_ : done.error().message;
  }

  const TopArguments& arguments_;
  Terminal* terminal_;
  Camera camera_;
  TopState state_;
  std::unique_ptr<Tracking> tracking_;
  std::string last_file_;
};

/// The screen from this row on, without the row of keys; of empty rows one, and none at the end.
std::string lines_of(const TopState& state, int first_row) {
  constexpr int kRows = 40;
  const Screen screen = draw(state, static_cast<int>(terminal_columns(STDOUT_FILENO, 120)), kRows);
  std::string text;
  bool is_apart = false;
  for (int y = first_row; y < screen.height() - 1; ++y) {
    const std::string line = screen.line(y);
    if (!line.empty()) text += (is_apart ? "\n" : "") + line + '\n';
    is_apart = line.empty();
  }
  return text;
}

/// Two samples, --interval apart: a rate needs two.
int print_once(const TopArguments& arguments) {
  Camera camera(arguments.camera);
  TopState state{.unicode = locale_has_unicode(), .working_folder = working_folder()};
  state.picture = camera.take();
  if (arguments.interval_s > 0) {
    usleep(static_cast<useconds_t>(arguments.interval_s * 1e6));
    state.picture = camera.take();
  }
  std::string text;
  if (arguments.format == "json") {
    text = picture_json(state.picture, Commands::kWhole, 1) + '\n';
  } else {
    text = lines_of(state, 1);  // without the tabs
    state.view = View::kGpus;
    const auto has_sum = [](const PictureRecording& one) { return !one.sums.empty(); };
    if (std::ranges::any_of(state.picture.recordings, has_sum))
      text += '\n' + lines_of(state, table_top(state));
  }
  return write_output(text, "-", {});
}

int top(const TopArguments& arguments) {
  const AlertOptions& alerts = arguments.camera.alerts;
  std::string wrong;
  const bool is_one_sample = arguments.once && arguments.interval_s == 0;
  if (!is_one_sample && !(arguments.interval_s >= 0.1 && arguments.interval_s <= 3600))
    wrong = "--interval must be between 0.1 and 3600 seconds (0 with --once: one sample)";
  if (alerts.warning_percent > alerts.critical_percent)
    wrong = "--warning-threshold is above --critical-threshold";
  if (!arguments.once && arguments.format == "json") wrong = "--format json needs --once";
  if (!wrong.empty()) return wrong_usage(wrong);
  if (arguments.once) return print_once(arguments);
  const char* plain = std::getenv("NO_COLOR");
  const bool with_colour =
      arguments.colour == "always" || (arguments.colour == "auto" && !(plain && *plain));
  const sigset_t stop = hold_stop_signals();
  auto terminal = Terminal::open(with_colour);
  if (!terminal) return report_error("", terminal.error());
  Session session(arguments, terminal->get());
  session.run(stop);
  terminal->reset();  // the terminal as it was, before anything is printed
  if (!session.tracked().empty()) std::printf("Saved: %s\n", session.tracked().c_str());
  return kExitOk;
}

}  // namespace

void add_top_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* command =
      app.add_subcommand("top", "show memory, processes and running recordings on the terminal");
  add_camera_folders(command, &arguments->camera);
  command->add_flag("--once", arguments->once, "print once and exit");
  command->add_option("--format", arguments->format, "with --once: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_defaulted(command, "--interval", "S", arguments->interval_s, "refresh interval in seconds");
  add_color_option(command, &arguments->colour);
  add_camera_thresholds(command, &arguments->camera);
  command->callback([arguments, &context] { context.exit_code = top(*arguments); });
}

}  // namespace gpumemprof
