#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "base/size.h"
#include "readers/xplane/space.h"
#include "trace/live_state.h"

namespace gpumemprof::xplane {
namespace {

/// What a device's allocator held when the profile began.
struct Before {
  bool is_known = false;        ///< the running totals tell
  uint64_t total_bytes = 0;     ///< as they tell
  uint64_t freed_blocks = 0;    ///< of that, what the profile frees
  uint64_t freed_bytes = 0;     ///< their sum
  uint64_t contradictions = 0;  ///< events after which the total is not what it should be
};

std::string blocks_text(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " block" : " blocks");
}

class XplaneSource final : public EventSource {
 public:
  XplaneSource(Space space, std::string path, uint64_t file_bytes)
      : rows_(std::move(space.rows)),
        tables_(std::move(space.tables)),
        loss_(std::move(space.loss)),
        has_steps_(space.has_steps) {
    info_.path = std::move(path);
    info_.kind = SourceKind::kTensorflowXplane;
    info_.bytes = file_bytes;
    info_.can = {.times = true, .addresses = true, .stacks = true};
    if (space.started_at_ns) place_on_wall_clock(*space.started_at_ns);
    // The events of one thread stand in their order; allocators have a lock, so times tell the
    // rest.
    std::ranges::stable_sort(rows_, {}, &Row::time_ns);
    find_state_before();
    tell_what_is_missing(space);
  }

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return &before_; }
  double progress() const override {
    return rows_.empty() ? 1 : static_cast<double>(at_) / static_cast<double>(rows_.size());
  }

  Result<bool> next(EventBatch* batch) override {
    constexpr size_t kBatchEvents = 4096;
    batch->clear();
    batch->reserve(kBatchEvents);
    batch->first_event = at_;
    const size_t end = std::min(at_ + kBatchEvents, rows_.size());
    for (size_t first = at_; at_ < end; ++at_) {
      const Row& row = rows_[at_];
      batch->time_ns.push_back(row.time_ns);
      batch->address.push_back(row.address);
      batch->size_bytes.push_back(row.size_bytes);
      batch->stack.push_back(row.stack);
      batch->thread.push_back(row.thread);
      batch->device.push_back(row.device);
      batch->action.push_back(row.is_alloc ? Action::kAlloc : Action::kFreeCompleted);
      if (has_steps_) batch->step.push_back(row.step);
      if (row.is_alloc && row.requested_bytes != 0 && row.requested_bytes != row.size_bytes)
        batch->requested.push_back({static_cast<uint32_t>(at_ - first), row.requested_bytes});
    }
    return batch->size() != 0;
  }

 private:
  /// Releases differ in whether the times in the file begin with the profile or in 1970.
  void place_on_wall_clock(uint64_t started_at_ns) {
    const bool is_absolute =
        !rows_.empty() && std::ranges::min(rows_, {}, &Row::time_ns).time_ns >= started_at_ns;
    for (Row& row : rows_) row.time_ns -= is_absolute ? started_at_ns : 0;
    for (Process& process : tables_.processes) {
      process.realtime_offset_ns = static_cast<int64_t>(started_at_ns);
      if (is_absolute && process.first_time_ns >= started_at_ns)
        process.first_time_ns -= started_at_ns;
    }
  }

  void find_state_before() {
    std::vector<Before> before(tables_.devices.size());
    std::vector<uint64_t> totals(tables_.devices.size());
    std::vector<absl::flat_hash_map<uint64_t, bool>> live(tables_.devices.size());  // by address
    for (const Row& row : rows_) {
      Before& device = before[row.device];
      auto [block, is_new] = live[row.device].try_emplace(row.address, row.is_alloc);
      if (is_new && !row.is_alloc) {
        before_.adopt(row.device, row.address,
                      {row.size_bytes, LiveBlock::kUnknownTime, 0, UINT32_MAX});
        ++device.freed_blocks;
        device.freed_bytes += row.size_bytes;
      }
      block->second = row.is_alloc;
      if (row.has_total) check_total(row, &totals[row.device], &device);
    }
    for (size_t i = 0; i < before.size(); ++i) tell_before(static_cast<uint16_t>(i), before[i]);
  }

  static void check_total(const Row& row, uint64_t* total, Before* device) {
    const uint64_t was =
        row.is_alloc ? row.total_bytes - row.size_bytes : row.total_bytes + row.size_bytes;
    const bool wraps = row.is_alloc ? row.total_bytes < row.size_bytes : was < row.size_bytes;
    device->contradictions += wraps || (device->is_known && was != *total);
    if (!device->is_known) device->total_bytes = wraps ? 0 : was;
    device->is_known = true;
    *total = row.total_bytes;
  }

  void tell_before(uint16_t index, const Before& before) {
    const std::string name = device_name(tables_.devices[index]);
    const auto add = [&](std::string text) { loss_.add(0, 0, std::move(text)); };
    if (!before.is_known) {
      add(name + ": memory live at the start of the profile is known only for " +
          blocks_text(before.freed_blocks) + " freed during it");
    } else if (before.contradictions != 0 || before.total_bytes < before.freed_bytes) {
      add(name + ": the allocator's total differs for " +
          std::to_string(std::max<uint64_t>(before.contradictions, 1)) +
          " events, so some are missing; memory live before them is not counted");
    } else if (before.total_bytes != 0) {
      // Which blocks they are is not in the file; that they are live, and their sum, is.
      const uint64_t rest = before.total_bytes - before.freed_bytes;
      if (rest != 0)
        before_.adopt(index, UINT64_MAX, {rest, LiveBlock::kUnknownTime, 0, UINT32_MAX});
      add("when the profile began " + name + " held " + format_bytes(before.total_bytes) +
          ", allocated by unknown operations: " + blocks_text(before.freed_blocks) +
          " of it freed later (" + format_bytes(before.freed_bytes) + ")" +
          (rest != 0 ? ", the rest is counted as one block" : ""));
    }
  }

  void tell_what_is_missing(const Space& space) {
    if (space.incomplete_events != 0) {
      loss_.add(space.incomplete_events, 0, "memory events without an address or a size");
    }
    if (rows_.empty()) {
      loss_.add(0, 0,
                "the profile has no memory events: they need host_tracer_level 2 or more, and on a "
                "CPU TF_CPU_ALLOCATOR_USE_BFC=1");
    }
    std::vector<uint64_t> highest(tables_.devices.size());
    for (const Row& row : rows_) {
      highest[row.device] = std::max(highest[row.device], row.total_bytes);
    }
    for (size_t i = 0; i < highest.size(); ++i) {
      const uint64_t peak = space.peak_since_start_bytes[i];
      if (peak <= highest[i]) continue;
      loss_.add(0, 0,
                device_name(tables_.devices[i]) + " was higher before the profile: " +
                    format_bytes(peak) + " since the program began");
    }
  }

  std::vector<Row> rows_;
  Tables tables_;
  SourceInfo info_;
  Loss loss_;
  LiveState before_;
  bool has_steps_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<EventSource> make_source(Space space, std::string path, uint64_t file_bytes) {
  return std::make_unique<XplaneSource>(std::move(space), std::move(path), file_bytes);
}

}  // namespace gpumemprof::xplane
