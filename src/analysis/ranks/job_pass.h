// What the ranks of a job did at the same time: how much they held together, and who came last to
// what they do together. One pass; O(1) an event, memory O(devices + collectives that are open).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// The most that all memories of one kind held at one moment.
struct JobPeak {
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  std::vector<uint64_t> by_device;  ///< then, indexed as Tables::devices; may be shorter
};

/// A rank among those that entered collectives.
struct RankArrivals {
  uint64_t last = 0;           ///< collectives that it entered last
  uint64_t waited_for_ns = 0;  ///< after the middle one of the others had entered, in all of these
  uint64_t longest_ns = 0;     ///< the longest of them
};

struct JobSums {
  JobPeak host, accelerators;  ///< of ranks' processes, and of those that these started
  uint64_t collectives = 0;    ///< that every rank entered of which any is recorded
  uint64_t first_ns = 0, last_ns = 0;  ///< when the first and the last of them were entered
  std::map<uint32_t, RankArrivals> arrivals;  ///< by rank
};

/// When a rank's process had ended at the latest: a launcher that tries again has waited for all
/// processes of the try before. Absent where neither that nor its end is known.
std::optional<uint64_t> end_in_job(const Tables& tables, const Process& process);

/// Not thread-safe.
class JobPass {
 public:
  /// `tables`: with all processes, before the first batch.
  explicit JobPass(const Tables& tables);
  /// False: there are no two ranks, and nothing to call.
  bool is_job() const { return ranks_ > 1; }

  /// Before the events of a batch.
  void begin_batch(const EventBatch& batch);
  /// After each event.
  void on_level(uint16_t device, uint64_t live_bytes, uint64_t time_ns) {
    if (device >= devices_.size()) [[unlikely]]
      meet(device);
    if (time_ns > next_end_ns_) [[unlikely]]
      end_processes(time_ns);
    OfDevice& one = devices_[device];
    if (one.kind == kNeither) return;
    OfKind& all = kinds_[one.kind];
    set_live(&one, &all, live_bytes);
    if (all.sum <= all.peak) return;
    all.peak = all.sum, all.time_ns = time_ns;
    ++all.epoch;
  }
  JobSums finish() const;

 private:
  enum Kind : uint8_t { kHost = 0, kAccelerator = 1, kNeither = 2 };
  struct OfDevice {
    uint64_t live = 0, at_peak = 0, epoch = 0;
    Kind kind = kNeither;
  };
  struct OfKind {
    uint64_t sum = 0, peak = 0, time_ns = 0, epoch = 0;
  };
  /// When each rank entered it; a rank's first.
  using Entered = std::map<uint32_t, uint64_t>;

  void meet(uint16_t device);
  static void set_live(OfDevice* one, OfKind* all, uint64_t live_bytes) {
    if (one->epoch != all->epoch) one->at_peak = one->live, one->epoch = all->epoch;
    all->sum += live_bytes - one->live;
    one->live = live_bytes;
  }
  /// What a process still held when it ended is nobody's after that.
  void end_processes(uint64_t time_ns);
  static void end(const Entered& entered, JobSums* sums);
  JobPeak peak_of(Kind kind) const;

  const Tables& tables_;
  size_t ranks_ = 0;  // recorded ones
  std::vector<OfDevice> devices_;
  std::array<OfKind, 2> kinds_;
  std::multimap<uint64_t, uint16_t> ends_;  // of devices, by the end of their process
  uint64_t next_end_ns_ = UINT64_MAX;
  std::map<uint64_t, Entered> open_;  // by collective
  JobSums sums_;
};

}  // namespace gpumemprof
