// Takes samples of what is watched, as telemetry events.
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
  /// One process; otherwise this user's recorded ones; if there are none at the beginning, the
  /// machine, and later recorded ones beside it.
  std::optional<int> pid;
  std::optional<int> device;  ///< only this accelerator of recorded processes
  TelemetryEvent identity;    ///< job, ranks and interval are copied into every event
  std::string root;           ///< stands for "/" in tests
  /// Where accelerators are queried; by default as the environment says, or only below `root` if
  /// that is given.
  std::optional<DeviceRoot> devices;
};

enum class WatchState { kRunning, kEnded };

/// Not thread-safe. Watched processes are not involved.
class Sampler {
 public:
  /// Errors: kNotFound if there is no process `pid`.
  static Result<Sampler> open(const SamplerOptions& options);

  /// One event per watched memory: every device of every recorded process, the RSS of a process
  /// that is not recorded and, once a second, its use of each accelerator by the driver; or the
  /// machine and each of its accelerators. An event's metadata say what its figures are ("basis")
  /// and why one is missing ("unknown"). Without `device`, empty while no recorded process is left;
  /// empty once the process given by `pid` is gone.
  std::vector<TelemetryEvent> sample();
  /// kEnded once the process given by `pid` is gone.
  WatchState state() const { return state_; }

  /// "process 12 (python train.py), recorded: exact counters", …
  std::string subject() const;
  /// Processes whose recording began since the last call, in the words of subject().
  std::vector<std::string> take_news();
  /// Why nothing can be measured of the accelerator that was asked for; empty where it can: a driver
  /// shows it, or none shows any and a recording has it.
  std::string why_no_device();
  /// One sentence per option that cannot be fulfilled here; may be empty.
  std::vector<std::string> notes() const;
  /// The upper limit of use, at the last sample.
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
  std::vector<LiveRecording> waiting_;  // runs that have allocated nothing yet
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
