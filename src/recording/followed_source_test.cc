// Recordings whose allocators were followed, as the allocators tell them.
#include "recording/followed_source.h"

#include <gtest/gtest.h>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kFollowedBase = 0x7f0000000000;

/// Events in batches, with all that lies beside them.
class Listed final : public EventSource {
 public:
  Listed(const EventBatch& events, Tables tables, uint32_t batch_size)
      : tables_(std::move(tables)) {
    for (uint32_t from = 0; from < events.size(); from += batch_size) {
      const auto to = std::min(from + batch_size, static_cast<uint32_t>(events.size()));
      EventBatch& batch = batches_.emplace_back();
      batch.first_event = from;
      for (uint32_t i = from; i < to; ++i) {
        append(&batch, {events.time_ns[i], events.action[i], events.address[i],
                        events.size_bytes[i], 0, 0, events.device[i]});
      }
      const auto take = [&](const auto& all, auto* part) {
        for (auto one : all) {
          if (one.event < from || one.event >= to) continue;
          one.event -= from;
          part->push_back(one);
        }
      };
      take(events.totals, &batch.totals), take(events.requested, &batch.requested);
      take(events.details, &batch.details);
      for (Mark mark : events.marks) {
        if (mark.before_event < from || mark.before_event >= to) continue;
        mark.before_event -= from;
        batch.marks.push_back(mark);
      }
    }
  }
  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  Result<bool> next(EventBatch* batch) override {
    batch->clear();
    if (at_ == batches_.size()) return false;
    *batch = batches_[at_++];
    return true;
  }

 private:
  Tables tables_;
  SourceInfo info_;
  Loss loss_;
  std::vector<EventBatch> batches_;
  size_t at_ = 0;
};

/// Device 0: CUDA, followed. Device 1: the CPU. Device 2: CUDA, only reported.
class Recorded {
 public:
  Recorded() {
    tables.processes.emplace_back();
    tables.threads.push_back({0, 7, "t"});
    tables.devices = {{.type = 1, .index = 0, .layer = Layer::kAllocator},
                      {.type = 0, .size_is_requested = true},
                      {.type = 1, .index = 1, .layer = Layer::kAllocator}};
    tables.allocators = {{.type = 1, .index = 0, .is_followed = true, .torch_version = "2.13.0"}};
  }
  void add(uint16_t device, Action action, uint64_t address, uint64_t bytes = 0) {
    append(&events, {.time_ns = ++time * 1000,
                     .action = action,
                     .address = kFollowedBase + address,
                     .size_bytes = bytes,
                     .device = device});
  }
  void allocate(uint64_t address, uint64_t bytes, uint64_t asked) {
    add(0, Action::kAlloc, address, bytes);
    events.requested.push_back({last(), asked});
    events.totals.push_back({last(), bytes, 1 << 20});
  }
  void free(uint64_t address, bool is_delayed) {
    add(0, Action::kFreeRequested, address);
    events.details.push_back({.event = last(), .is_delayed_free = is_delayed, .stream = 64});
  }
  void mark(uint64_t value) {
    events.marks.push_back({.before_event = last() + 1, .kind = MarkKind::kStep, .value = value});
  }
  std::unique_ptr<FollowedSource> read(FollowedSource::Sizes sizes,
                                       std::set<uint16_t> left_alone = {}) {
    return std::make_unique<FollowedSource>(std::make_unique<Listed>(events, tables, batch_size),
                                            sizes, std::move(left_alone));
  }

  Tables tables;
  EventBatch events;
  uint64_t time = 0;
  uint32_t batch_size = 4096;

 private:
  uint32_t last() const { return static_cast<uint32_t>(events.size()) - 1; }
};

/// "alloc 100 @0", a line an event; a mark is "step 3", a new batch "two" or "one": the halves of
/// frees that it has.
std::vector<std::string> told(FollowedSource& source) {
  std::vector<std::string> out;
  EventBatch batch;
  uint64_t number = 0;
  while (*source.next(&batch)) {
    EXPECT_EQ(batch.first_event, number);
    number += batch.size();
    out.push_back(batch.frees_in_two_steps ? "two" : "one");
    size_t mark = 0;
    const auto marks = [&](size_t before) {
      for (; mark < batch.marks.size() && batch.marks[mark].before_event <= before; ++mark)
        out.push_back("step " + std::to_string(batch.marks[mark].value));
    };
    for (size_t i = 0; i < batch.size(); ++i) {
      marks(i);
      out.push_back(std::to_string(batch.device[i]) + ' ' + action_name(batch.action[i]) + ' ' +
                    std::to_string(batch.size_bytes[i]) + " @" +
                    std::to_string(batch.address[i] - kFollowedBase));
    }
    marks(batch.size());
  }
  return out;
}

using Lines = std::vector<std::string>;

void small_run(Recorded* run) {
  run->add(0, Action::kSegmentAlloc, 0, 1 << 20);
  run->allocate(0, 1024, 1000);
  run->mark(0);
  run->allocate(1024, 512, 5);
  run->free(0, false);
  run->mark(1);
  run->free(1024, true);
  run->add(1, Action::kAlloc, 4096, 30);
  run->add(0, Action::kFreeCompleted, 1024);
}

TEST(FollowedSource, TellsBothHalvesOfFreesAndWhatWasAskedFor) {
  Recorded run;
  small_run(&run);
  for (const uint32_t batch_size : {1, 2, 3, 4096}) {
    run.batch_size = batch_size;
    auto source = run.read(FollowedSource::Sizes::kRequested);
    Lines lines = told(*source);
    std::erase_if(lines, [](const std::string& line) { return line == "one" || line == "two"; });
    EXPECT_EQ(lines, (Lines{"0 segment_alloc 1048576 @0", "0 alloc 1000 @0", "step 0",
                            "0 alloc 5 @1024", "0 free_requested 1000 @0",
                            "0 free_completed 1000 @0", "step 1", "0 free_requested 5 @1024",
                            "1 alloc 30 @4096", "0 free_completed 5 @1024"}));
    EXPECT_EQ(source->finish().size(), 1u);
    EXPECT_TRUE(source->broken().empty());
  }
}

TEST(FollowedSource, TellsWhatWasHandedOutBesideWhatWasAskedFor) {
  Recorded run;
  small_run(&run);
  auto source = run.read(FollowedSource::Sizes::kAllocated);
  EventBatch batch;
  ASSERT_TRUE(*source->next(&batch));
  EXPECT_EQ(batch.size_bytes,
            (std::vector<uint64_t>{1 << 20, 1024, 512, 1024, 1024, 512, 30, 512}));
  std::vector<std::pair<uint32_t, uint64_t>> asked;
  for (const RequestedSize& one : batch.requested) asked.emplace_back(one.event, one.bytes);
  EXPECT_EQ(asked, (std::vector<std::pair<uint32_t, uint64_t>>{
                       {1, 1000}, {2, 5}, {3, 1000}, {4, 1000}, {5, 5}, {7, 5}}));
  ASSERT_EQ(batch.totals.size(), 2u);
  EXPECT_EQ(batch.totals[1].event, 2u);
  ASSERT_EQ(source->recorded(batch)->size(), 7u);
}

TEST(FollowedSource, EndsBlocksOfOthersWhereTheirFreeIsRequested) {
  Recorded run;
  run.add(0, Action::kSegmentAlloc, 0, 1 << 20);
  run.add(2, Action::kAlloc, 9000, 512);
  run.allocate(0, 1024, 1000);
  run.free(0, true);
  run.mark(0);
  run.add(2, Action::kFreeRequested, 9000);
  run.mark(1);
  run.add(0, Action::kFreeCompleted, 0);
  auto source = run.read(FollowedSource::Sizes::kRequested);
  EXPECT_EQ(told(*source), (Lines{"two", "0 segment_alloc 1048576 @0", "2 alloc 512 @9000",
                                  "0 alloc 1000 @0", "0 free_requested 1000 @0", "one", "step 0",
                                  "2 free_requested 0 @9000", "two", "step 1",
                                  "0 free_completed 1000 @0"}));
}

TEST(FollowedSource, NamesTheDevicesWhoseHistoryIsNotWhole) {
  Recorded run;
  run.add(0, Action::kSegmentAlloc, 0, 1 << 20);
  run.allocate(0, 1024, 1000);
  run.allocate(0, 1024, 900);  // over a live one
  auto source = run.read(FollowedSource::Sizes::kRequested);
  told(*source);
  EXPECT_TRUE(source->finish().empty());
  EXPECT_EQ(source->broken(), (std::set<uint16_t>{0}));
  auto again = run.read(FollowedSource::Sizes::kRequested, source->broken());
  EXPECT_EQ(told(*again), (Lines{"one", "0 segment_alloc 1048576 @0", "0 alloc 1024 @0",
                                 "0 alloc 1024 @0"}));
  EXPECT_TRUE(again->finish().empty());
  EXPECT_TRUE(again->broken().empty());
}

TEST(FollowedSource, PassesOnWhatNobodyFollowed) {
  Recorded run;
  small_run(&run);
  run.tables.allocators.clear();
  auto source = run.read(FollowedSource::Sizes::kRequested);
  EventBatch batch;
  ASSERT_TRUE(*source->next(&batch));
  EXPECT_EQ(batch.size_bytes, run.events.size_bytes);
  EXPECT_EQ(source->recorded(batch), &batch) << "nothing is copied";
}

}  // namespace
}  // namespace gpumemprof
