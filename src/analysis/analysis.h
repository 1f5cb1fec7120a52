// The first questions anyone asks of a recording: how high, when, and who held it. One pass over
// the events; memory O(live blocks + distinct stacks), never O(events).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "analysis/driver/device_use.h"
#include "analysis/finding.h"
#include "analysis/pass/moments.h"
#include "analysis/pass/program_end.h"
#include "analysis/pass/step_sums.h"
#include "analysis/pass/turns.h"
#include "analysis/score.h"
#include "analysis/statistics/timeline.h"
#include "base/error.h"
#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

class BlockKeeper;      // analysis/categories/block_keeper.h
struct BfcPool;         // readers/bfc_pool.h
struct DriverMemories;  // analysis/driver/driver_memories.h
struct HostMemories;    // analysis/host/host_memories.h
struct JobRanks;        // analysis/ranks/job_ranks.h
struct JobSums;         // analysis/ranks/job_pass.h
struct ProcessHolders;  // recording/holders_file.h
struct TruthOfProcess;  // analysis/driver/device_truth.h
struct FollowedPass;    // analysis/pass/followed_pass.h
struct SnapshotDevice;  // analysis/replay/snapshot_device.h

/// How much analyze() looks for. Figures, events, times and categories are the same in each.
enum class AnalysisDepth : uint8_t {
  kPeak,     ///< how high, when, who held it: one pass where nothing has to be read again
  kHolders,  ///< and what it is, in every part
  kWhole,    ///< and replays, findings, patterns, scores, what was sampled beside it
};

/// What was left of the host's memory for a process at the last sample that has it.
struct HostRoom {
  uint32_t pid = 0;
  std::string host;
  uint64_t limit_bytes = 0;  ///< of the cgroup, of ulimit -v, or all that the machine has
  uint64_t free_bytes = 0;
  bool is_of_process = false;  ///< ulimit -v: what other processes take is theirs
};

struct AnalysisOptions {
  size_t timeline_buckets = 512;
  uint64_t temporary_ns = 1'000'000;  ///< a block that lives no longer than this is a temporary
  bool find_leaks = false;            ///< analyze() does where the depth is kWhole
  AnalysisDepth depth = AnalysisDepth::kWhole;  ///< of analyze() alone
  std::optional<uint64_t> capacity_bytes;       ///< of the device, where the caller knows it
  std::vector<MomentRequest> moments;           ///< at which live memory is reported
  std::optional<uint64_t> start_ns;  ///< when it all began; absent: as Analysis::start_time_ns
  /// Holders of tensors, from the recorded processes' own looks; may be null.
  const std::vector<ProcessHolders>* holders = nullptr;
  /// The driver's figures for the processes during the run; may be null.
  const std::vector<TruthOfProcess>* truths = nullptr;
  /// By the samples of `run`; may be null.
  const std::vector<HostRoom>* host_rooms = nullptr;
  /// How the recorded program ended, where the caller knows; null: as its folder says, where the
  /// depth is kWhole.
  const ProgramEnds* ends = nullptr;
  BlockKeeper* keeper = nullptr;  ///< is called for every block; may be null
  /// Progress from 0 to 1, called at intervals; may be empty.
  std::function<void(double)> on_progress;
};

/// What one stack allocated and freed again at once.
struct Temporary {
  uint32_t stack;
  uint64_t count;
  uint64_t bytes;
};

struct LifetimeBin {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
/// Bin b holds the freed blocks that lived for [2^(b-1), 2^b) ns; bin 0 those freed in the same ns.
inline constexpr size_t kLifetimeBins = 65;

/// A request that an allocator refused.
struct Refusal {
  uint64_t size_bytes;
  uint64_t event;
  uint32_t stack;
  uint64_t number;      ///< of the device's refusals, from 0
  uint64_t live_bytes;  ///< on the device then
  /// At the same stack: how many requests were served, and the largest; 0: none, or not known.
  uint64_t served_count = 0, largest_served_bytes = 0;
  uint64_t allocated_after_bytes = 0;  ///< on the device, until the next refusal
  uint32_t thread = UINT32_MAX;        ///< that asked; UINT32_MAX: not known
  std::vector<Holder> holders = {};    ///< what was live: of the first ones and the last alone
};
inline constexpr size_t kMostRefusals = 1000;  ///< of a device: the first ones and the last are kept

/// One device of one process, or one memory that several of its allocators share.
struct DeviceAnalysis {
  uint16_t device = 0;  ///< index in Tables::devices; for a sum, one of its parts
  /// For a sum: the allocators whose blocks it adds up; else empty.
  std::vector<uint16_t> parts;
  DeviceFigures figures;
  /// Number of figures.peak_event among the events of this device alone.
  uint64_t own_peak_event = 0;
  /// Of figures.peak_bytes, what TensorFlow's pools hold beyond what was asked for; 0 as well where
  /// it is not known.
  uint64_t unasked_at_peak_bytes = 0;
  /// The most that can have been held at one moment: figures.peak_bytes or more (held_bound.h).
  /// Absent where it is not known.
  std::optional<uint64_t> most_held_bytes;
  uint32_t threads = 0;                 ///< that allocated or freed, where most_held_bytes is known
  std::vector<Holder> holders_at_peak;  ///< all, largest first; they add up to figures.peak_bytes
  std::vector<Holder> holders_at_end;   ///< all, largest first; they add up to figures.live_bytes
  /// All that was live right after the last allocation of its process, largest first: what a program
  /// frees after that it frees as it takes itself down. Of a snapshot: as holders_at_end.
  std::vector<Holder> holders_before_exit;
  /// Of these, what was made after the first fifth of the device's time; empty where leaks are not
  /// looked for.
  std::vector<Holder> kept_after_set_up;
  /// Allocated over the whole source; as holders, in the order in which stacks first held memory.
  std::vector<Holder> totals;
  std::vector<Temporary> temporaries;  ///< all, most often first
  uint64_t temporary_count = 0;
  uint64_t temporary_bytes = 0;
  std::array<LifetimeBin, kLifetimeBins> lifetimes = {};
  Timeline timeline;
  std::vector<Refusal> refusals;  ///< kMostRefusals; figures.actions counts all
  uint64_t last_alloc_event = 0;  ///< 0 as well where it allocated nothing
  uint64_t first_time_ns = 0;     ///< of its first event; 0 without one
  uint64_t last_time_ns = 0;
  StepSums steps;  ///< where the framework numbers its steps
  DeviceCategories categories;
  StepLevels step_levels;                ///< of the program's steps; empty if it has none
  std::vector<LiveMoment> live_moments;  ///< as AnalysisOptions::moments
  Turns turns;
  /// Where the depth is kWhole: the shape of its timeline, and how good it is.
  std::vector<SeriesPattern> patterns;
  Score score;
  /// Facts of an allocator's history beyond the events: for snapshots, and for devices of a
  /// recording whose allocator was followed; else null. Where it is there, sizes are as asked for
  /// and figures.peak_event counts the device's own events.
  std::shared_ptr<const SnapshotDevice> snapshot;
  /// The state of the allocator's pool, where a memory dump of TensorFlow's is the source; else
  /// null.
  std::shared_ptr<const BfcPool> pool;
};

/// Sums over the devices of a process. Peaks of different devices are never added up.
struct ProcessAnalysis {
  uint64_t events = 0;
  uint64_t alloc_count = 0;
  uint64_t alloc_bytes = 0;
  uint64_t unmatched_frees = 0;
};

struct ThreadAnalysis {
  uint64_t alloc_count = 0;
  uint64_t alloc_bytes = 0;
};

struct Analysis {
  SourceInfo source;
  uint64_t events = 0;          ///< all, the dropped ones included
  uint64_t events_read = 0;     ///< those that this pass saw
  bool oldest_dropped = false;  ///< the pass began from a checkpoint, not from nothing
  uint64_t temporary_ns = 0;
  uint64_t start_time_ns = 0;  ///< when recording began (the first process), else the first event
  uint64_t first_time_ns = 0;  ///< of the first event that was read
  uint64_t last_time_ns = 0;
  std::vector<DeviceAnalysis> devices;  ///< with at least one event, in the order of Tables
  /// Of each process in which several allocators of a framework share the host's memory: their sum,
  /// with a peak of its own, as theirs need not be at one time.
  std::vector<DeviceAnalysis> sums;
  std::vector<ProcessAnalysis> processes;  ///< indexed as Tables::processes
  std::vector<ThreadAnalysis> threads;     ///< indexed as Tables::threads
  std::vector<CategoryMoment> moments;     ///< what DeviceCategories::at_moments are about
  std::vector<Finding> findings;           ///< the most severe first
  Score score;                             ///< where the depth is kWhole: the worst of the devices'
  Loss loss;
  /// What the CUDA driver was seen to hand out; null where it was not recorded.
  std::shared_ptr<const DriverMemories> driver;
  /// What drivers and kernel said meanwhile; nothing where the recording has no samples of them.
  std::optional<DeviceUse> machine;
  /// The host's memory meanwhile, by process and class; null where no samples tell of it.
  std::shared_ptr<const HostMemories> host;
  ProgramEnds ends;
  std::shared_ptr<const JobSums> job_sums;  ///< of the ranks of a job, at the same time; may be null
  std::shared_ptr<const JobRanks> ranks;  ///< of a job, where the depth is kWhole; null: it is none
  std::string unread_holders;  ///< what of who holds tensors could not be read; also in `loss`
};

/// One pass over the events alone, to their end: what analyze() begins with. `followed`: of whom
/// `source` is, where allocators were followed; may be null. Errors are those of the source.
Result<Analysis> analyze_source(EventSource& source, const AnalysisOptions& options,
                                const FollowedPass* followed = nullptr);

/// True where the sizes are what the program asked for, false where they were rounded.
bool has_requested_sizes(const DeviceAnalysis& device, const Tables& tables);

/// The most that the allocator held of the device; absent where it is not known.
std::optional<uint64_t> peak_reserved_bytes(const DeviceAnalysis& device);
/// The most that was allocated, as the allocator rounds it where that is known, else as asked for.
uint64_t peak_allocated_bytes(const DeviceAnalysis& device);
/// The sum of DeviceAnalysis::holders_before_exit.
uint64_t bytes_before_exit(const DeviceAnalysis& device);

/// Why no block of the device is known to belong to a module; empty where its marks tell.
std::string why_no_modules(const DeviceAnalysis& device);

/// Nothing is missing that the figures of the device could depend on. What every report goes by.
bool is_exact(const Analysis& analysis, const DeviceAnalysis& device);
/// Of a device that is not exact: "events were lost", or "events may have been lost" where none is
/// known to be missing.
const char* why_not_exact(const Analysis& analysis, const DeviceAnalysis& device);

/// The device whose peak is the answer: the highest accelerator where one was used, else the
/// highest of the rest, a sum in place of its parts. Null where nothing was allocated. Points into
/// `analysis`. `is_asked`: of these devices alone; empty: of all.
const DeviceAnalysis* main_device(const Analysis& analysis, const Tables& tables,
                                  const std::function<bool(const DeviceAnalysis&)>& is_asked = {});

/// The figures of a device; null where it has none.
template <class AnyAnalysis>
auto* find_device(AnyAnalysis& analysis, uint16_t device) {
  const auto found = std::ranges::find(analysis.devices, device, &DeviceAnalysis::device);
  return found == analysis.devices.end() ? nullptr : &*found;
}
/// The peak of a device; 0 where it has none.
inline uint64_t peak_bytes_of(const Analysis& analysis, uint16_t device) {
  const DeviceAnalysis* found = find_device(analysis, device);
  return found ? found->figures.peak_bytes : 0;
}

/// "cuda:0"; of a sum "tensorflow:cpu + mklcpu". What reports call it.
std::string memory_name(const DeviceAnalysis& device, const Tables& tables);

}  // namespace gpumemprof
