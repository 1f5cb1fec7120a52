// Takes samples of what is to be watched, as telemetry events.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "devices/host_memory.h"
#include "devices/visible_device.h"
#include "live/device_watch.h"
#include "live/live_recordings.h"
#include "live/recording_follower.h"
#include "telemetry/event.h"

namespace gpumemprof {

struct SamplerOptions {
  /// One process; else this user's recorded ones; where there are none at the beginning, the
  /// machine, and the recorded ones that come later beside it.
  std::optional<int> pid;
  std::optional<int> device;  ///< only this accelerator of recorded processes
  TelemetryEvent identity;    ///< job, ranks and interval are copied into every event
  std::string root;           ///< stands for "/" in tests
  /// Where the accelerators are asked; as the environment says, and below `root` alone where that
  /// is given.
  std::optional<DeviceRoot> devices;
};

enum class WatchState { kRunning, kEnded };

/// Not thread-safe. Watched processes take no part.
class Sampler {
 public:
  /// Errors: kNotFound where there is no process `pid`.
  static Result<Sampler> open(const SamplerOptions& options);

  /// One event a memory that is watched: every device of every recorded process, the RSS of a
  /// process that is not recorded and, once a second, what the driver says it uses of each
  /// accelerator; or the machine and each of its accelerators. What an event's figures stand for is
  /// in its metadata ("basis"), and why a figure is not there ("unknown"). Without
  /// `device`, empty while none of the recorded processes is left, until there is another; empty
  /// once the process given by `pid` is gone.
  std::vector<TelemetryEvent> sample();
  /// kEnded once the process given by `pid` is gone.
  WatchState state() const { return state_; }

  /// "process 12 (python train.py), recorded: exact counters", …
  std::string subject() const;
  /// Processes that began to be recorded since the last call, in the words of subject().
  std::vector<std::string> take_news();
  /// One sentence for each wish that cannot be fulfilled here; may be empty.
  std::vector<std::string> notes() const;
  /// What may be used at most, at the last sample.
  const UsableMemory& usable() const { return usable_; }

 private:
  struct Target {
    LiveRecording recording;
    std::optional<RecordingFollower> follower;
    VisibleDevices visible;
  };
  explicit Sampler(SamplerOptions options);
  static std::string describe(const Target& target);
  void look_for_recordings();
  void follow(Target* target);
  void forget_ended();
  void add_process(Target* target, std::vector<TelemetryEvent>* out);
  void add_machine(std::vector<TelemetryEvent>* out);
  void add_accelerators(std::vector<TelemetryEvent>* out);
  void add_driver_figures(const Target& target, std::vector<TelemetryEvent>* out);
  TelemetryEvent blank() const;
  void finish(TelemetryEvent event, nlohmann::ordered_json metadata,
              std::vector<TelemetryEvent>* out);

  SamplerOptions options_;
  std::string proc_;
  std::vector<Target> targets_;
  bool whole_machine_ = false;
  bool began_ = false;
  std::vector<std::string> news_;
  WatchState state_ = WatchState::kRunning;
  UsableMemory usable_{};
  DeviceWatch devices_;
  std::map<std::tuple<int64_t, std::string, int64_t>, uint64_t>
      last_allocated_;    // by PID, collector and device: what one series is of
  bool is_told_ = false;  // whether there was an event yet
  int64_t next_search_ns_ = 0, next_pss_ns_ = 0;
  bool with_pss_ = false;
};

/// Nanoseconds since 1970.
int64_t wall_clock_ns();
std::string host_name();

}  // namespace gpumemprof
