// What was live at chosen moments, and the levels of every step. Exact: the state is used
// between the two events that the moment lies between. Streaming; memory O(stacks) a moment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "analysis/pass/step_levels.h"
#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

class Categories;

struct MomentRequest {
  enum Kind : uint8_t { kStepEnd, kTime };
  Kind kind = kStepEnd;
  uint64_t value = 0;  ///< number of the step; nanoseconds after the first event
};

/// One device at such a moment.
struct LiveMoment {
  bool is_reached = false;  ///< false: the recording has no such step, or ends before
  uint64_t time_ns = 0;
  uint64_t event = 0;  ///< number of the event after it
  uint64_t live_bytes = 0, live_count = 0;
  std::vector<Holder> holders;  ///< by stack, largest first; they add up to live_bytes
  std::vector<Holder> totals;   ///< allocated up to then; as totals_of()
  /// The same by category and name; empty where `why_no_categories` says why.
  std::vector<CategoryHolder> categories;
  std::string why_no_categories;
};

/// What the stacks of a device allocated so far, in the order in which they first held memory.
std::vector<Holder> totals_of(const DeviceState& state);

/// Watches for moments beside a LiveState. Not thread-safe.
class MomentGatherer {
 public:
  /// `categories` may be null. `of_sums`: the state has a device a process (HostSums).
  MomentGatherer(std::span<const MomentRequest> wanted, const LiveState& state,
                 Categories* categories, bool of_sums = false);

  /// Before the events of a batch are applied. `start_ns`: of the recording.
  void begin_batch(const EventBatch& batch, const Tables& tables, uint64_t start_ns);
  /// Index of the event after which after_event() must be called; SIZE_MAX: of none.
  size_t next() const { return next_; }
  void after_event();
  /// After each event.
  void on_level(uint16_t device, uint64_t live_bytes) {
    if (device >= within_.size()) [[unlikely]]
      meet(device, live_bytes);
    Within& range = within_[device];
    if (live_bytes > range.most_bytes) range.most_bytes = live_bytes;
    if (live_bytes < range.least_bytes) range.least_bytes = live_bytes;
  }
  /// After the last batch, before the categories are finished. `last_ns`: of the last event.
  void finish(uint64_t last_ns);

  /// Once, after finish().
  StepLevels take_levels(uint16_t device);
  /// By request. The categories are those of `categories`, which must be finished for the device.
  std::vector<LiveMoment> take_moments(uint16_t device);

 private:
  struct Within {
    uint64_t least_bytes = UINT64_MAX, most_bytes = 0;
  };
  struct Pending {
    size_t before_event;
    uint64_t time_ns;
    bool is_step;
    uint32_t process;  // of a step
    uint64_t value;    // number of the step, or index in wanted_
  };

  void meet(uint16_t device, uint64_t live_bytes);
  void reach(const Pending& what);
  void end_step(const Pending& what);
  void end_step_of(uint16_t device, const Pending& what);
  void look(size_t request, uint16_t device, const Pending& at);
  LiveMoment& moment(size_t request, uint16_t device);

  const std::vector<MomentRequest> wanted_;
  const LiveState& state_;
  Categories* const categories_;
  const bool of_sums_;
  const Tables* tables_ = nullptr;
  uint64_t first_event_ = 0, start_ns_ = 0;
  size_t batch_size_ = 0;
  std::vector<Pending> pending_;  // of the batch, in order
  size_t at_ = 0;
  size_t next_ = SIZE_MAX;
  std::vector<bool> is_time_over_;              // by request
  std::vector<std::vector<LiveMoment>> taken_;  // by request, device
  std::vector<Within> within_;                  // by device
  std::vector<StepLevels> levels_;              // by device
};

}  // namespace gpumemprof
