// A recording as its allocators saw it: for a device whose allocator history was recorded, the
// events are those of that history, as in a snapshot.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "recording/allocator_history.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Passes a source on. Events of such a device become those of its history: both halves of every
/// free, so that a block is live until its kFreeCompleted; requested or rounded sizes. Threads,
/// times, stacks, steps and marks are the recording's. Not thread-safe.
class FollowedSource final : public EventSource {
 public:
  enum class Sizes : uint8_t {
    kRequested,  ///< size_bytes is what the program asked for
    kAllocated,  ///< what it got; what it asked for stands in `requested`
  };
  /// The devices `left_alone` are passed on as they were recorded.
  FollowedSource(std::unique_ptr<EventSource> source, Sizes sizes,
                 std::set<uint16_t> left_alone = {});

  const SourceInfo& info() const override { return source_->info(); }
  const Tables& tables() const override { return source_->tables(); }
  const Loss& loss() const override { return source_->loss(); }
  const LiveState* state_before_first_event() const override {
    return source_->state_before_first_event();
  }
  double progress() const override { return source_->progress(); }
  Result<bool> next(EventBatch* batch) override;

  /// The batch `given` by next() as it was recorded. Null if it was returned before: one batch of
  /// the recording may become several.
  const EventBatch* recorded(const EventBatch& given) const {
    if (is_direct_) return &given;
    return is_fresh_ ? &recorded_ : nullptr;
  }
  /// The histories, one snapshot per process: stacks are ids of tables(), times are on its clock.
  /// Call once, at the end.
  std::vector<AllocatorSnapshot> finish();
  /// After finish(): devices whose history turned out to be incomplete. Their events must not be
  /// used: read again, with these left alone.
  const std::set<uint16_t>& broken() const { return told_; }

 private:
  bool is_told(uint16_t device);
  void take_part(EventBatch* batch);
  void take_marks(uint32_t before_event, EventBatch* batch);
  void tell(uint32_t index, EventBatch* batch);
  void pass(uint32_t index, EventBatch* batch);
  void add_row(uint32_t index, uint64_t size_bytes, Action action, EventBatch* batch) const;

  std::unique_ptr<EventSource> source_;
  const Sizes sizes_;
  AllocatorHistory history_;
  const bool follows_;
  std::set<uint16_t> left_alone_, told_;
  EventBatch recorded_;
  AllocatorHistory::Place place_;
  uint32_t at_ = 0;  // in recorded_
  size_t total_ = 0, requested_ = 0, detail_ = 0, mark_ = 0;  // likewise, the next ones
  bool is_direct_ = false, is_fresh_ = false;
  uint64_t given_ = 0;  // events
};

}  // namespace gpumemprof
