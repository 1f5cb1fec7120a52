// One picture of what lives now: the machine's memory, its accelerators, processes, recordings that
// grow, alerts. `top` and `serve` show nothing that is not in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/driver/driver_memories.h"
#include "analysis/host/host_identity.h"
#include "devices/host_memory.h"
#include "live/live_recordings.h"
#include "live/recording_follower.h"
#include "picture/accelerators.h"

namespace gpumemprof {

/// One device of one recorded process. Sizes in bytes.
struct PictureDevice {
  std::string name;  ///< "cpu", "cuda:0", "tensorflow:gpu:0"
  bool is_cpu = false;
  uint64_t allocated = 0;
  Quantity reserved;  ///< what the allocator holds of the device
  uint64_t peak = 0;  ///< highest `allocated` of all events so far
  uint64_t live_blocks = 0, alloc_count = 0, free_count = 0;
  uint64_t refused = 0;  ///< requests that ended out of memory
  /// Between the last two looks; empty at the first.
  std::optional<double> bytes_per_second, allocs_per_second;
  std::optional<double> leak_bytes_per_second;  ///< 0: does not grow
  std::string why_no_leak;        ///< where there is no leak_bytes_per_second
  std::vector<uint64_t> history;  ///< `allocated` of the last looks, oldest first
  double history_seconds = 0;     ///< from the first to the last of them
  std::vector<FollowedHolder> holders;
  FollowedCategories categories;  ///< of what is live
};

/// What one device holds of a recorded process and of others, added up. The recording and the
/// device's driver are asked one after the other: what came or went between is in what is
/// unexplained.
struct PictureSum {
  std::string name;         ///< "cuda:0", as the program numbers it
  std::string accelerator;  ///< "nvidia:1"; empty where it is not known which one it is
  uint64_t refused = 0;     ///< by the driver, for want of memory
  DriverMoment moment;
  DeviceIdentity sum;  ///< of `moment`
};

/// One process whose recording grows.
struct PictureRecording {
  int pid = 0;  ///< as this machine sees it; as the process itself does where `is_here` is false
  uint64_t start_ticks = 0;
  bool is_here = true;  ///< false: found in a folder, its process is not visible from here
  std::string host, command, folder;
  std::optional<int64_t> rank;  ///< RANK of its environment, where that can be read
  Quantity resident;
  HostMoment host_memory;  ///< without what only a walk through its pages or malloc itself tells
  double age_seconds = 0;  ///< how long ago the recording was read for what follows
  uint64_t events = 0, lost_events = 0;
  bool exact = true;
  std::string why_inexact;
  std::string problem;  ///< why the recording cannot be read; empty where it can
  std::vector<PictureDevice> devices;
  bool has_driver = false;  ///< whether what the driver handed out is recorded
  std::vector<PictureSum> sums;
  uint64_t pinned_bytes = 0, registered_bytes = 0;  ///< host memory that the driver keeps in place
};

struct PictureProcess {
  int pid = 0;
  std::string command;
  uint64_t resident_bytes = 0;
  bool is_recorded = false;
  std::optional<uint64_t> accelerator_bytes;  ///< over all accelerators, where their drivers tell
};

struct PictureAlert {
  int64_t time_ns = 0;  ///< since 1970
  bool is_critical = false;
  std::string subject, text;
};

struct Picture {
  int64_t time_ns = 0;    ///< since 1970
  int64_t steady_ns = 0;  ///< of a clock that only goes forward
  std::string host;
  HostMemory memory;
  UsableMemory usable;
  CgroupMoment cgroup;
  PictureAccelerators accelerators;
  std::vector<PictureProcess> processes;  ///< that hold most, largest first
  std::vector<PictureRecording> recordings;
  std::vector<LiveRecording> waiting;  ///< runs that have allocated nothing yet
  std::vector<PictureAlert> alerts;                ///< the last ones, newest last
  uint64_t warning_count = 0, critical_count = 0;  ///< of all alerts since the beginning
  uint64_t refused_count = 0;  ///< requests of all recordings since then, also of those that ended
  std::optional<uint64_t> oom_kills;               ///< by the kernel; empty where nobody counts
};

/// "train.py" of "/usr/bin/python3 -u train.py --lr 1": the program without folders and arguments,
/// which may be secrets.
std::string program_name(const std::string& command);

/// "rank 3", else "pid 12".
std::string subject_name(const PictureRecording& recording);

/// Whether commands are told with their arguments, which may be secrets, or by program_name()
/// alone.
enum class Commands { kWhole, kProgramOnly };

/// The picture as one JSON object, docs/schemas/live.schema.json; `indent` as nlohmann's dump.
std::string picture_json(const Picture& picture, Commands commands, int indent = -1);

}  // namespace gpumemprof
