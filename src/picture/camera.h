// Takes pictures of what lives now, one after the other, and remembers what only two of them tell.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "devices/oom_kills.h"
#include "live/alerts.h"
#include "live/live_recordings.h"
#include "picture/growth.h"
#include "picture/picture.h"

namespace gpumemprof {

/// Of a view that must answer: CameraOptions::most_look_ns.
inline constexpr int64_t kLookForAView = 500'000'000;

struct CameraOptions {
  std::vector<std::string>
      folders;  ///< recordings there, and one level down, are followed too, wherever they are made
  size_t most_processes = 20, most_holders = 10, most_history = 240;
  /// How long a picture may read recordings; what is left is read for the next ones, in turn, and
  /// has the figures of its last reading until then. 0: all of it, however long that takes.
  int64_t most_look_ns = 0;
  AlertOptions alerts;
  std::string root;  ///< stands for "/" in tests
};

/// A recording of a picture, and what was read of it: its stacks are in FollowedDevice::held where
/// `state.has_held`, and their ids are those of the tables.
using SeeStacks =
    std::function<void(const PictureRecording&, const Tables&, const FollowedState&)>;

/// Not thread-safe. Neither the machine nor the recorded processes take part.
class Camera {
 public:
  static constexpr size_t kMostRecordings = 256, kMostAlerts = 100;

  explicit Camera(CameraOptions options);
  ~Camera();

  /// Searches for new recordings at most every two seconds; the rest is read anew each time.
  /// `see` is called for each recording that was read; then all their stacks are read, too.
  Picture take(const SeeStacks& see = {});
  /// Thresholds for what comes from now on.
  void set_thresholds(double warning_percent, double critical_percent);

 private:
  struct Subject;                                      // a recording that is followed
  struct Memory;                                       // of one device of one subject
  using Key = std::tuple<std::string, int, uint64_t>;  // host, pid, start

  static bool is_of(const Result<RecordingFollower>& follower, const Subject& subject,
                    uint64_t start_ticks);
  void search();
  void search_folder(const std::string& folder, bool with_folders);
  void look_at_recordings(bool with_held);
  void add_recording(Subject& subject, Picture* picture);
  void add_device(Subject& subject, const FollowedDevice& device, const FollowedState& state,
                  PictureRecording* recording);
  void add_processes(Picture* picture);
  void judge(Picture* picture);
  void alert(const Picture& picture, bool is_critical, std::string subject, std::string text);
  void look_at_memory(const Picture& picture, const std::string& name, const Quantity& used,
                      const Quantity& total);
  bool is_running(const Subject& subject) const;
  void note_ends(int64_t now_ns);
  void tell_refusals(const Picture& picture, Subject* subject);

  CameraOptions options_;
  std::string proc_, host_;
  std::map<Key, std::unique_ptr<Subject>> subjects_;
  std::vector<LiveRecording> waiting_;      // as Picture::waiting
  std::map<std::string, Alerts> memories_;  // by the name of the memory
  std::set<std::string> passed_over_;       // files in folders that need no second look
  std::deque<PictureAlert> alerts_;
  uint64_t warning_count_ = 0, critical_count_ = 0, refused_count_ = 0;
  OomKills kills_;
  AcceleratorReader accelerators_;
  Accelerators said_;  // by them, for the picture that is being taken
  int64_t next_search_ns_ = 0;
  Key last_looked_;  // where the next picture goes on
};

}  // namespace gpumemprof
